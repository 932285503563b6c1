//! Passwords of a megabyte: cheap to send, expensive to hash.

use reqwest::{StatusCode, header};

use super::stage::{PASSWORD, Stage};
use crate::support::form::Form as _;

#[tokio::test]
async fn oversized_passwords_are_refused_before_they_count() {
    // More than a bucket holds, at the door and at re-authentication: each 400 with field, limit and remedy; none hashed,
    // none counted, none recorded.
    let stage = Stage::start().await;
    stage.server.admin("ada").await;
    let cookie = stage.session("203.0.113.1", "ada").await;
    let (before, recorded) = (stage.hashes(), stage.server.record().await.len());
    for bytes in [1_025, 1_000_000] {
        for _ in 0..10 {
            let answer = stage.sign_in("203.0.113.9", "ada", &"a".repeat(bytes)).await;
            assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
            let page = answer.text().await.unwrap();
            let said =
                format!("assword: has at most 1024 bytes, but this one has {bytes}; use a shorter one");
            assert!(page.contains(&said), "{page}");
        }
    }
    let long = "a".repeat(1_025);
    let again = stage
        .post("203.0.113.1", "/settings/password")
        .header("sec-fetch-site", "same-origin")
        .form(&[("old", long.as_str()), ("password", "another good password")])
        .header(header::COOKIE, cookie);
    assert_eq!(
        again.send().await.unwrap().status(),
        StatusCode::UNPROCESSABLE_ENTITY
    );
    assert_eq!(
        (stage.hashes(), stage.server.record().await.len()),
        (before, recorded)
    );
    let honest = stage.sign_in("203.0.113.9", "ada", PASSWORD).await;
    assert_eq!(honest.status(), StatusCode::SEE_OTHER);
}
