//! Forms that hold no complete row of roles, which must not be read as "no roles".

use crate::support::{TestServer, on};
use domain::access::Role;
use reqwest::Method;

#[tokio::test]
async fn an_unreadable_form_removes_no_roles() {
    // A form that is too large, of a fresh session and of an old one, whose form would be sent again after the password.
    let server = TestServer::start().await;
    server.add_user("root", on(Role::Admin, None, None)).await;
    let bea_id = server.add_user("bea", on(Role::Operator, None, None)).await;
    let root = server.signed_in("root").await;
    let path = format!("/settings/users/{bea_id}/grants");
    let body = format!("role=viewer&backend=&prefix={}", "x".repeat(300_000));
    let parts = [
        ("accept", "text/html"),
        ("sec-fetch-site", "same-origin"),
        ("content-type", "application/x-www-form-urlencoded"),
        ("body", body.as_str()),
    ];
    for age in ["authenticated_at", "0"] {
        let statement = format!("UPDATE sessions SET authenticated_at = {age}");
        server.store.sql(&statement).await;
        let refused = root.send(Method::POST, &path, &parts).await;
        assert_eq!(refused.status(), 413, "{age}");
        let directory = server.identity().directory();
        assert_eq!(directory.users[&bea_id].grants.iter().count(), 1, "{age}");
    }
}

#[tokio::test]
async fn a_form_without_a_row_removes_no_roles() {
    // No field, another form's field, and a row without its prefix. The page that answers has rows to fill in.
    let server = TestServer::start().await;
    server.add_user("root", on(Role::Admin, None, None)).await;
    let bea_id = server.add_user("bea", on(Role::Operator, None, None)).await;
    let root = server.signed_in("root").await;
    let path = format!("/settings/users/{bea_id}/grants");
    let forms: [&[(&str, &str)]; 3] = [&[], &[("name", "bea")], &[("role", ""), ("backend", "")]];
    for form in forms {
        let refused = root.post(&path, form).await;
        assert_eq!(refused.status(), 422, "{form:?}");
        let page = refused.text().await.unwrap();
        assert!(
            page.contains("It must be there at least once"),
            "{form:?}: {page}"
        );
        assert!(page.contains("name=\"role\""), "{form:?}: {page}");
        let directory = server.identity().directory();
        assert_eq!(directory.users[&bea_id].grants.iter().count(), 1, "{form:?}");
    }
}
