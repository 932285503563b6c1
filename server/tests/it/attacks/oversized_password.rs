//! Passwords of a megabyte: cheap to send, expensive to hash.

use super::proxied_server::ProxiedServer;
use crate::support::{PASSWORD, on};
use domain::access::Role;
use reqwest::{StatusCode, header};

use crate::support::form::Form as _;

#[tokio::test]
async fn oversized_passwords_are_refused_before_they_count() {
    // More than a bucket holds at sign-in, each 400 with field, limit and remedy; one at a change of
    // the password, 422; none hashed, counted or recorded. A form of a megabyte is not read.
    let proxied = ProxiedServer::start().await;
    proxied.server.add_user("ada", on(Role::Admin, None, None)).await;
    let cookie = proxied.session("203.0.113.1", "ada").await;
    let (before, recorded) = (proxied.hashes(), proxied.server.audit_entries().await.len());
    for bytes in [1_025, 10_000] {
        for _ in 0..10 {
            let answer = proxied.sign_in("203.0.113.9", "ada", &"a".repeat(bytes)).await;
            assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
            let page = answer.text().await.unwrap();
            let message =
                format!("assword: must have at most 1024 bytes, but has {bytes}; use a shorter one");
            assert!(page.contains(&message), "{page}");
        }
    }
    let whole = proxied
        .sign_in("203.0.113.9", "ada", &"a".repeat(1_000_000))
        .await;
    assert_eq!(whole.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let problem = whole.text().await.unwrap();
    assert!(problem.contains("at most 16384 bytes"), "{problem}");
    let long = "a".repeat(1_025);
    let again = proxied
        .post("203.0.113.1", "/settings/password")
        .header("sec-fetch-site", "same-origin")
        .form(&[("old", long.as_str()), ("password", "another good password")])
        .header(header::COOKIE, cookie);
    assert_eq!(
        again.send().await.unwrap().status(),
        StatusCode::UNPROCESSABLE_ENTITY
    );
    assert_eq!(
        (proxied.hashes(), proxied.server.audit_entries().await.len()),
        (before, recorded)
    );
    let honest = proxied.sign_in("203.0.113.9", "ada", PASSWORD).await;
    assert_eq!(honest.status(), StatusCode::SEE_OTHER);
}
