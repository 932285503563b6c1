//! Settings: the same changes through pages without script and through the API, secrets shown
//! once, permissions.

use crate::support::{PASSWORD, TestCaller, TestServer, on, reply};
use domain::access::Role;
use leasehold::audit::{Audit, ChainCheckpoints};
use leasehold::identity::Identity;
use reqwest::{Client, Method, Response};
use runtime::clock::Clock;
use runtime::db::Db;
use serde_json::{Value, json};

/// The text between the markers of a secret that is shown once.
fn secret_in(page: &str) -> String {
    let rest = page
        .split("class=\"secret\"><code class=\"mono\">")
        .nth(1)
        .expect(page);
    rest.split('<').next().unwrap().replace("&amp;", "&")
}

async fn text(answer: Response, status: u16) -> String {
    assert_eq!(answer.status(), status);
    answer.text().await.unwrap()
}

#[tokio::test]
async fn a_user_is_added_sets_a_password_and_is_disabled() {
    // All by pages: the link is shown once and works once; the new password works; after disabling, nothing works.
    let server = TestServer::builder().redis().start().await;
    server.add_user("root", on(Role::Admin, None, None)).await;
    let root = server.signed_in("root").await;
    let form = [
        ("name", "bea"),
        ("role", "operator"),
        ("backend", "cache"),
        ("prefix", "tenant_1:"),
    ];
    let page = text(root.post("/settings/users", &form).await, 201).await;
    let link = secret_in(&page);
    assert!(link.starts_with(&server.url("/sign-in?link=lhl_")), "{link}");
    let listed = text(root.get("/settings/users").await, 200).await;
    assert!(!listed.contains("lhl_") && listed.contains("bea") && listed.contains("tenant_1:"));
    assert!(
        listed.contains("2\u{a0}users may sign in, 1 of them an admin"),
        "{listed}"
    );

    let bea = server.browser();
    let secret = link.rsplit_once('=').unwrap().1;
    assert_eq!(bea.post("/sign-in", &[("link", secret)]).await.status(), 303);
    let again = server.browser();
    assert_eq!(again.post("/sign-in", &[("link", secret)]).await.status(), 410);
    let own = text(bea.get("/settings").await, 200).await;
    assert!(own.contains("Choose a password") && !own.contains("Current password"));
    assert_eq!(bea.get("/settings/users").await.status(), 403);
    let weak = bea.post("/settings/password", &[("password", "short")]).await;
    assert!(text(weak, 422).await.contains("at least 12 characters"));
    let chosen = bea.post("/settings/password", &[("password", PASSWORD)]).await;
    assert_eq!(chosen.status(), 303);
    let elsewhere = server.signed_in("bea").await;
    let wrong = [
        ("old", "not the password of bea"),
        ("password", "another long password"),
    ];
    let wrong = bea.post("/settings/password", &wrong).await;
    assert!(text(wrong, 422).await.contains("The current password is wrong"));
    let right = [("old", PASSWORD), ("password", "another long password")];
    assert_eq!(bea.post("/settings/password", &right).await.status(), 303);
    assert_eq!(elsewhere.get("/").await.status(), 303, "ends your other sessions");
    assert_eq!(bea.get("/").await.status(), 200, "one's own goes on");

    let id = id_of(&server, "bea").await;
    let path = format!("/settings/users/{id}/disable");
    assert_eq!(root.post(&path, &[]).await.status(), 303);
    assert_eq!(bea.get("/settings").await.status(), 303);
    let page = text(root.get(&format!("/settings/users/{id}")).await, 200).await;
    assert!(page.contains("bea is disabled"));
    let missing = text(root.get("/settings/users/nobody").await, 404).await;
    assert!(
        missing.contains("nobody") && missing.contains("Not found"),
        "{missing}"
    );
}

async fn id_of(server: &TestServer, name: &str) -> String {
    server.identity().directory().user_named(name).unwrap().id.clone()
}

#[tokio::test]
async fn roles_are_edited_in_rows_and_the_last_admin_stays() {
    // Two rows and a spare one; then rows without a role, also for the only admin.
    let server = TestServer::builder().redis().start().await;
    let root_id = server.add_user("root", on(Role::Admin, None, None)).await;
    let bea_id = server.add_user("bea", on(Role::Viewer, None, None)).await;
    let root = server.signed_in("root").await;
    let rows = [
        ("role", "viewer"),
        ("backend", ""),
        ("prefix", ""),
        ("role", ""),
        ("backend", ""),
        ("prefix", ""),
        ("role", "operator"),
        ("backend", "cache"),
        ("prefix", "a:"),
    ];
    let path = format!("/settings/users/{bea_id}/grants");
    assert_eq!(root.post(&path, &rows).await.status(), 303);
    let grants = server.identity().directory().users[&bea_id].grants.clone();
    let kept: Vec<_> = grants
        .iter()
        .map(|grant| (grant.role, grant.prefix.as_deref()))
        .collect();
    assert_eq!(kept, [(Role::Viewer, None), (Role::Operator, Some("a:"))]);
    let empty = [("role", ""), ("backend", ""), ("prefix", "")];
    let none = root
        .post(&format!("/settings/users/{root_id}/grants"), &empty)
        .await;
    assert!(
        text(none, 409)
            .await
            .contains("The last enabled admin cannot lose the role admin")
    );
    let unknown = root
        .post(&path, &[("role", "king"), ("backend", ""), ("prefix", "")])
        .await;
    assert_eq!(unknown.status(), 422);
    assert_eq!(root.post(&path, &empty).await.status(), 303);
    assert_eq!(
        server.identity().directory().users[&bea_id].grants.iter().count(),
        0
    );
}

#[tokio::test]
async fn a_token_is_shown_once_on_its_page_and_revoked_there() {
    // It works; the list does not know it any more; revoked, it does not work.
    let server = TestServer::builder().redis().start().await;
    server.add_user("root", on(Role::Admin, None, None)).await;
    let root = server.signed_in("root").await;
    let form = [
        ("name", "billing"),
        ("role", "client"),
        ("backend", ""),
        ("prefix", "billing:"),
        ("days", "90"),
    ];
    let page = text(root.post("/settings/tokens", &form).await, 201).await;
    let token = secret_in(&page);
    let uses = async || {
        let request = Client::new().get(server.url("/v1/me")).bearer_auth(&token);
        request.send().await.unwrap()
    };
    let me: Value = uses().await.json().await.unwrap();
    assert_eq!((&me["name"], &me["kind"]), (&json!("billing"), &json!("token")));
    let listed = text(root.get("/settings/tokens").await, 200).await;
    assert!(!listed.contains(&token), "{listed}");
    let tokens = server.identity().tokens().await.unwrap();
    let expiry = tokens.iter().find_map(|token| token.expires_at).unwrap();
    let expiry = chrono::DateTime::from_timestamp_millis(expiry).unwrap();
    let expiry = domain::time_format::iso(expiry);
    assert!(
        listed.contains(&format!("datetime=\"{expiry}\"")),
        "{expiry}: {listed}"
    );
    let twice = root.post("/settings/tokens", &form).await;
    assert!(text(twice, 409).await.contains("exists already"));
    let id = me["id"].as_str().unwrap();
    root.post(&format!("/settings/tokens/{id}/revoke"), &[]).await;
    assert_eq!(uses().await.status(), 401);
}

#[tokio::test]
async fn sessions_are_ended_only_by_admins_and_their_owner() {
    // Bea cannot end root's session, which is answered like an unknown one, and ends her own; root's continues.
    let server = TestServer::builder().redis().start().await;
    server.add_user("root", on(Role::Admin, None, None)).await;
    let bea_id = server.add_user("bea", on(Role::Viewer, None, None)).await;
    let (root, first, second) = (
        server.signed_in("root").await,
        server.signed_in("bea").await,
        server.signed_in("bea").await,
    );
    let page = text(root.get("/settings/sessions").await, 200).await;
    assert!(
        page.contains("2\u{a0}users are signed in, with 3\u{a0}sessions"),
        "{page}"
    );
    let sessions = server.identity().sessions().await.unwrap();
    let of_root = sessions.iter().find(|session| session.user_id != bea_id).unwrap();
    let foreign = first
        .post(&format!("/settings/sessions/{}/end", of_root.id), &[])
        .await;
    assert_eq!(foreign.status(), 404);
    for session in sessions.iter().filter(|session| session.user_id == bea_id) {
        first
            .post(&format!("/settings/sessions/{}/end", session.id), &[])
            .await;
    }
    let alive = [&first, &second].map(async |browser| browser.get("/").await.status().as_u16());
    let alive = futures::future::join_all(alive).await;
    assert!(alive.contains(&303), "{alive:?}");
    assert_eq!(root.get("/").await.status(), 200);
}

/// As the holder of the token, with a body or without.
async fn send(
    server: &TestServer,
    admin: &TestCaller,
    act: (Method, &str),
    body: Option<Value>,
) -> (u16, Value) {
    let mut request = Client::new().request(act.0, server.url(act.1));
    if let Some(body) = body {
        request = request.json(&body);
    }
    reply(admin.authenticate(request)).await
}

/// Each of them has an audit entry.
async fn recorded(server: &TestServer, wanted: &[&str]) {
    let actions: Vec<String> = server
        .audit_entries()
        .await
        .into_iter()
        .map(|row| row.action)
        .collect();
    for action in wanted {
        assert!(
            actions.iter().any(|found| found == action),
            "{action}: {actions:?}"
        );
    }
}

#[tokio::test]
async fn the_users_api_equals_the_users_pages() {
    // Added, given a link, roles and a password, disabled and enabled with an admin's token; each has an audit entry.
    let server = TestServer::builder().redis().start().await;
    let admin = server.token("admin", on(Role::Admin, None, None)).await;
    let send = async |method, path: &str, body| send(&server, &admin, (method, path), body).await;
    let new = json!({"name": "bea", "grants": [{"role": "operator", "prefix": "tenant_1:"}]});
    let (status, added) = send(Method::POST, "/v1/users", Some(new.clone())).await;
    assert_eq!(status, 201, "{added}");
    assert_eq!(send(Method::POST, "/v1/users", Some(new)).await.0, 409);
    let path = format!("/v1/users/{}", added["id"].as_str().unwrap());
    let (status, link) = send(Method::POST, &format!("{path}/link"), None).await;
    assert_eq!(status, 201, "{link}");
    assert!(link["link"].as_str().unwrap().contains("/sign-in?link=lhl_"));
    for (part, body) in [
        (
            "grants",
            json!({"grants": [{"role": "viewer", "backend": "cache"}]}),
        ),
        ("password", json!({"password": PASSWORD})),
    ] {
        let (status, problem) = send(Method::PUT, &format!("{path}/{part}"), Some(body)).await;
        assert_eq!(status, 204, "{problem}");
    }
    server.signed_in("bea").await;
    let (_, users) = server.as_user(&admin).get("/v1/users").await;
    let grants = json!([{"role": "viewer", "backend": "cache", "prefix": null}]);
    assert_eq!(users["users"][0]["grants"], grants);
    assert_eq!(users["users"][0]["hasPassword"], true);
    for (act, status) in [("disable", 200), ("enable", 204), ("explode", 404)] {
        assert_eq!(
            send(Method::POST, &format!("{path}/{act}"), None).await.0,
            status,
            "{act}"
        );
    }
    recorded(&server, &["USER_CREATE", "USER_CHANGE", "USER_DISABLE"]).await;
}

#[tokio::test]
async fn the_api_refuses_bad_users_and_names_the_field() {
    // A name with a space, an unknown role, an unknown field, no list of grants, no body.
    let server = TestServer::builder().redis().start().await;
    let admin = server.token("admin", on(Role::Admin, None, None)).await;
    for bad in [
        json!({"name": "x y", "grants": []}),
        json!({"name": "ok", "grants": [{"role": "king"}]}),
        json!({"name": "ok", "grants": [{"role": "viewer", "extra": 1}]}),
        json!({"name": "ok", "grants": "viewer"}),
        json!({"name": "ok"}),
    ] {
        let (status, problem) = send(&server, &admin, (Method::POST, "/v1/users"), Some(bad)).await;
        assert_eq!(status, 400, "{problem}");
        assert!(problem["field"].is_string(), "{problem}");
    }
}

#[tokio::test]
async fn the_token_session_and_switch_apis_equal_their_pages() {
    // A token shown once and revoked; a session ended; the switch thrown; each has an audit entry.
    let server = TestServer::builder().redis().start().await;
    let admin = server.token("admin", on(Role::Admin, None, None)).await;
    server.add_user("bea", on(Role::Viewer, None, None)).await;
    let bea = server.signed_in("bea").await;
    let send = async |method, path: &str, body| send(&server, &admin, (method, path), body).await;
    let token = json!({"name": "t", "grants": [{"role": "client"}], "expiresInSeconds": 60});
    let (status, made) = send(Method::POST, "/v1/tokens", Some(token)).await;
    assert_eq!(status, 201, "{made}");
    assert!(made["token"].as_str().unwrap().starts_with("lht_"));
    let (_, tokens) = server.as_user(&admin).get("/v1/tokens").await;
    assert!(!tokens.to_string().contains("lht_"));
    let (status, revoked) = send(Method::DELETE, "/v1/tokens/t", None).await;
    assert_eq!(
        (status, &revoked["revokedTokens"]),
        (200, &json!(["t"])),
        "{revoked}"
    );
    let (_, sessions) = server.as_user(&admin).get("/v1/sessions").await;
    let path = format!("/v1/sessions/{}", sessions["sessions"][0]["id"].as_str().unwrap());
    assert_eq!(send(Method::DELETE, &path, None).await.0, 204);
    assert_eq!(bea.get("/").await.status(), 303);
    let switch = Some(json!({"readOnly": true}));
    assert_eq!(
        send(Method::PUT, "/v1/read-only", switch).await.1["readOnly"],
        true
    );
    let (_, roles) = server.as_user(&admin).get("/v1/roles").await;
    assert_eq!(roles["roles"].as_array().unwrap().len(), Role::ALL.len());
    let wanted = [
        "TOKEN_CREATE",
        "TOKEN_REVOKE",
        "SESSION_REVOKE",
        "READ_ONLY_CHANGE",
    ];
    recorded(&server, &wanted).await;
}

#[tokio::test]
async fn last_use_of_a_token_is_shown_here_and_on_other_servers() {
    // Used once: shown on the next page of this server, then by another reader of the store. An
    // unused one shows "never".
    let server = TestServer::builder().redis().start().await;
    server.add_user("root", on(Role::Admin, None, None)).await;
    let root = server.signed_in("root").await;
    let used = server.token("used", on(Role::Viewer, None, None)).await;
    server.token("idle", on(Role::Viewer, None, None)).await;
    let page = text(root.get("/settings/tokens").await, 200).await;
    assert!(
        page.contains("2\u{a0}active tokens, 2 never used") && page.contains(">2\u{a0}rows<"),
        "{page}"
    );
    server.as_user(&used).get("/v1/me").await;
    let page = text(root.get("/settings/tokens").await, 200).await;
    assert!(page.contains("2\u{a0}active tokens, 1 never used"), "{page}");
    assert!(page.contains("updated within 5\u{a0}s"), "{page}");
    let db = Db::open(&server.store.url).await.unwrap();
    let audit = Audit::new(db.clone(), Clock::start(), ChainCheckpoints::default());
    let beside = Identity::open(db, audit, Clock::start()).await.unwrap();
    testkit::eventually("the note", || async {
        let tokens = beside.tokens().await.unwrap();
        tokens
            .iter()
            .all(|token| (token.name == "idle") == token.used_at.is_none())
    })
    .await;
}

#[tokio::test]
async fn repeated_sign_in_failures_share_one_entry() {
    // A single user and a single token.
    let server = TestServer::builder().redis().start().await;
    server.add_user("root", on(Role::Admin, None, None)).await;
    let root = server.signed_in("root").await;
    server.token("only", on(Role::Viewer, None, None)).await;
    for path in ["/settings/users", "/settings/tokens"] {
        let page = text(root.get(path).await, 200).await;
        assert!(page.contains(">1\u{a0}row<"), "{path}: {page}");
    }
}
