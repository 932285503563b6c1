//! A session that an admin left open gives itself a token, an account, or the end of a protection. Changes by a session need
//! authentication within 15 minutes; a program's token has none to give, and is not asked.

use domain::access::{Right, Role};
use leasehold::http::access::needs::{Need, TABLE, find};
use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::people::stage::{PASSWORD, Stage, on};

async fn make_stale(stage: &Stage) {
    let file = stage.store.strip_prefix("sqlite:").unwrap();
    let console = leasehold::db::console_file(file.as_ref());
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
async fn stale_session_changes_no_users_tokens_tiers_or_receivers() {
    // Every such line of the table, by the session and by a token.
    let stage = Stage::start().await;
    stage.person("root", on(Role::Admin, None, None)).await;
    let token = stage.token("automation", on(Role::Admin, None, None)).await;
    let browser = stage.signed_in("root").await;
    make_stale(&stage).await;
    let mut checked = 0;
    for (method, path, need) in TABLE {
        let method: Method = method.parse().unwrap();
        let is_for_fresh = find(&method, Some(path)).is_for_fresh;
        if method == Method::GET || *need != Need::May(Right::Administer) {
            assert!(!is_for_fresh, "{method} {path}");
            continue;
        }
        let parts = [("sec-fetch-site", "same-origin"), ("accept", "*/*")];
        let answer = browser.send(method.clone(), &filled(path), &parts).await;
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        let is_refused = status == StatusCode::FORBIDDEN && text.contains("needs_reauthentication");
        assert_eq!(is_refused, is_for_fresh, "{method} {path}: {status} {text}");
        let by_token = reqwest::Client::new().request(method.clone(), stage.url(&filled(path)));
        let by_token = by_token.bearer_auth(token.expose()).send().await.unwrap();
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
async fn refused_form_is_kept_and_sent_after_the_password() {
    let stage = Stage::start().await;
    stage.person("root", on(Role::Admin, None, None)).await;
    let browser = stage.signed_in("root").await;
    make_stale(&stage).await;
    let page = browser.get("/settings/people").await.text().await.unwrap();
    assert!(page.contains("href=\"/prove?next=/settings/people\""), "{page}");

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
    let refused = send("/settings/people", &typed).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    let text = refused.text().await.unwrap();
    assert!(text.contains("action=\"/prove?send=/settings/people\""), "{text}");
    assert!(
        text.contains("name=\"name\" value=\"bea\"") && text.contains("value=\"jobs:\""),
        "{text}"
    );
    assert!(stage.identity().directory().person_named("bea").is_none());

    let with = |password: &'static str| {
        let mut form = typed.to_vec();
        form.push(("currentPassword", password));
        form
    };
    let wrong = send("/prove?send=%2Fsettings%2Fpeople", &with("not the password")).await;
    assert_eq!(wrong.status(), StatusCode::UNAUTHORIZED);
    let text = wrong.text().await.unwrap();
    assert!(
        text.contains("value=\"bea\"") && !text.contains("not the password"),
        "{text}"
    );
    let right = send("/prove?send=%2Fsettings%2Fpeople", &with(PASSWORD)).await;
    // The browser sends the same body to this address.
    assert_eq!(right.status(), StatusCode::TEMPORARY_REDIRECT);
    assert_eq!(right.headers()["location"], "/settings/people");
    let done = send("/settings/people", &with(PASSWORD)).await;
    assert_eq!(done.status(), StatusCode::CREATED);
    assert!(!done.text().await.unwrap().contains(PASSWORD));
    assert!(stage.identity().directory().person_named("bea").is_some());
}

#[tokio::test]
async fn proving_leads_to_our_own_pages_only() {
    let stage = Stage::start().await;
    stage.person("root", on(Role::Admin, None, None)).await;
    let browser = stage.signed_in("root").await;
    for (query, to) in [
        ("next=%2Fsettings%2Ftokens", "/settings/tokens"),
        ("next=https%3A%2F%2Fevil.example", "/"),
        ("send=%2F%2Fevil.example%2Fx", "/"),
        ("send=%2Fv1%2Fpeople", "/"),
        ("", "/"),
    ] {
        let form = [("currentPassword", PASSWORD)];
        let answer = browser.post(&format!("/prove?{query}"), &form).await;
        assert_eq!(answer.headers()["location"], to, "{query}");
    }
}

#[tokio::test]
async fn refusals_of_stale_sessions_are_in_the_audit_log() {
    let stage = Stage::start().await;
    stage.person("root", on(Role::Admin, None, None)).await;
    let browser = stage.signed_in("root").await;
    make_stale(&stage).await;
    browser.post("/settings/tokens", &[("name", "mine")]).await;
    let entries = stage.record().await;
    let entry = &entries[0];
    assert_eq!(
        (&*entry.actor_name, &*entry.outcome),
        ("root", "needs_reauthentication")
    );
    let after: Value = serde_json::from_str(entry.after.as_deref().unwrap()).unwrap();
    assert_eq!(after["path"], "/settings/tokens");
    assert_eq!(stage.identity().tokens().await.unwrap(), []);
}
