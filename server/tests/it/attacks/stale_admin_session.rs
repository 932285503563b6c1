//! An admin's open session creates a token or an account, or removes a protection. Changes by a
//! session need a sign-in within 15 minutes; a program's token needs none.

use crate::support::{PASSWORD, TestServer, on};
use domain::access::{Permission, Role};
use leasehold::http::auth::route_permissions::{Access, RouteRow, find};
use leasehold::http::routes::TABLE;
use reqwest::Method;
use serde_json::Value;

async fn make_stale(server: &TestServer) {
    let file = server.store.url.strip_prefix("sqlite:").unwrap();
    let console = runtime::db::console_file(file.as_ref());
    let pool = sqlx::SqlitePool::connect(&format!("sqlite:{}", console.display()))
        .await
        .unwrap();
    sqlx::query("UPDATE sessions SET authenticated_at = authenticated_at - 16 * 60000")
        .execute(&pool)
        .await
        .unwrap();
}

fn filled(path: &str) -> String {
    let parts = path
        .split('/')
        .map(|part| if part.starts_with('{') { "x" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn stale_session_changes_no_administered_object() {
    // Every such line of the table, by the session and by a token.
    let server = TestServer::builder().redis().start().await;
    server.add_user("root", on(Role::Admin, None, None)).await;
    let token = server.token("automation", on(Role::Admin, None, None)).await;
    let browser = server.signed_in("root").await;
    make_stale(&server).await;
    let mut checked = 0;
    for RouteRow {
        method, path, access, ..
    } in TABLE
    {
        let method: Method = method.parse().unwrap();
        let is_for_fresh = find(&method, Some(path)).is_for_fresh;
        if method == Method::GET || *access != Access::May(Permission::Administer) {
            assert!(!is_for_fresh, "{method} {path}");
            continue;
        }
        let parts = [("sec-fetch-site", "same-origin"), ("accept", "*/*")];
        let answer = browser.send(method.clone(), &filled(path), &parts).await;
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        let is_refused = status == 403 && text.contains("needs_reauthentication");
        assert_eq!(is_refused, is_for_fresh, "{method} {path}: {status} {text}");
        let by_token = reqwest::Client::new().request(method.clone(), server.url(&filled(path)));
        let by_token = by_token.bearer_auth(token.secret()).send().await.unwrap();
        let text = by_token.text().await.unwrap();
        assert!(
            !text.contains("needs_reauthentication"),
            "{method} {path}: {text}"
        );
        checked += usize::from(is_refused);
    }
    assert!(checked >= 20, "{checked}");
}

#[tokio::test]
async fn rejected_form_is_resent_after_the_password() {
    let server = TestServer::builder().redis().start().await;
    server.add_user("root", on(Role::Admin, None, None)).await;
    let browser = server.signed_in("root").await;
    make_stale(&server).await;
    let page = browser.get("/settings/users").await.text().await.unwrap();
    assert!(page.contains("href=\"/prove?next=/settings/users\""), "{page}");

    let html = ("accept", "text/html,*/*;q=0.8");
    let send = async |path: &str, form: &[(&str, &str)]| {
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        let parts = [
            ("sec-fetch-site", "same-origin"),
            ("content-type", "application/x-www-form-urlencoded"),
            html,
            ("body", &*body),
        ];
        browser.send(Method::POST, path, &parts).await
    };
    let typed = [
        ("name", "bea"),
        ("role", "viewer"),
        ("backend", ""),
        ("prefix", "jobs:"),
    ];
    let refused = send("/settings/users", &typed).await;
    assert_eq!(refused.status(), 403);
    let text = refused.text().await.unwrap();
    assert!(text.contains("action=\"/prove?send=/settings/users\""), "{text}");
    assert!(
        text.contains("name=\"name\" value=\"bea\"") && text.contains("value=\"jobs:\""),
        "{text}"
    );
    assert!(server.identity().directory().user_named("bea").is_none());

    let with = |password: &'static str| {
        let mut form = typed.to_vec();
        form.push(("currentPassword", password));
        form
    };
    let wrong = send("/prove?send=%2Fsettings%2Fusers", &with("not the password")).await;
    assert_eq!(wrong.status(), 401);
    let text = wrong.text().await.unwrap();
    assert!(
        text.contains("value=\"bea\"") && !text.contains("not the password"),
        "{text}"
    );
    let right = send("/prove?send=%2Fsettings%2Fusers", &with(PASSWORD)).await;
    // The browser sends the same body to this address.
    assert_eq!(right.status(), 307);
    assert_eq!(right.headers()["location"], "/settings/users");
    let done = send("/settings/users", &with(PASSWORD)).await;
    assert_eq!(done.status(), 201);
    assert!(!done.text().await.unwrap().contains(PASSWORD));
    assert!(server.identity().directory().user_named("bea").is_some());
}

#[tokio::test]
async fn reauthentication_redirects_only_inside_the_console() {
    let server = TestServer::builder().redis().start().await;
    server.add_user("root", on(Role::Admin, None, None)).await;
    let browser = server.signed_in("root").await;
    for (query, to) in [
        ("next=%2Fsettings%2Ftokens", "/settings/tokens"),
        ("next=https%3A%2F%2Fevil.example", "/"),
        ("send=%2F%2Fevil.example%2Fx", "/"),
        ("send=%2Fv1%2Fusers", "/"),
        ("", "/"),
    ] {
        let form = [("currentPassword", PASSWORD)];
        let answer = browser.post(&format!("/prove?{query}"), &form).await;
        assert_eq!(answer.headers()["location"], to, "{query}");
    }
}

#[tokio::test]
async fn refusals_of_stale_sessions_are_in_the_audit_log() {
    let server = TestServer::builder().redis().start().await;
    server.add_user("root", on(Role::Admin, None, None)).await;
    let browser = server.signed_in("root").await;
    make_stale(&server).await;
    browser.post("/settings/tokens", &[("name", "mine")]).await;
    let entries = server.audit_entries().await;
    let entry = &entries[0];
    assert_eq!(
        (&*entry.actor_name, &*entry.outcome),
        ("root", "needs_reauthentication")
    );
    let after: Value = serde_json::from_str(entry.after.as_deref().unwrap()).unwrap();
    assert_eq!(after["path"], "/settings/tokens");
    assert_eq!(server.identity().tokens().await.unwrap(), []);
}
