//! The settings: the same acts through pages without a script and through the API, what is shown once, and who may not.

use domain::access::Role;
use leasehold::audit::{Audit, Heads};
use leasehold::clock::Clock;
use leasehold::db::Db;
use leasehold::identity::{Identity, Secret};
use reqwest::{Client, Method, Response, StatusCode};
use serde_json::{Value, json};

use super::stage::{PASSWORD, Stage, call, get, on};

/// What stands between the markers of a secret that is shown once.
fn secret_in(page: &str) -> String {
    let rest = page.split("class=\"mono secret\">").nth(1).expect(page);
    rest.split('<').next().unwrap().replace("&amp;", "&")
}

async fn text(answer: Response, status: StatusCode) -> String {
    assert_eq!(answer.status(), status);
    answer.text().await.unwrap()
}

#[tokio::test]
async fn somebody_is_added_by_a_link_chooses_a_password_and_is_disabled() {
    // All by pages: the link is shown once and works once; the new password works; disabled, nothing does any more.
    let stage = Stage::start().await;
    stage.person("root", on(Role::Admin, None, None)).await;
    let root = stage.signed_in("root").await;
    let form = [
        ("name", "bea"),
        ("role", "operator"),
        ("backend", "cache"),
        ("prefix", "tenant_1:"),
    ];
    let page = text(root.post("/settings/people", &form).await, StatusCode::CREATED).await;
    let link = secret_in(&page);
    assert!(link.starts_with(&stage.url("/sign-in?link=lhl_")), "{link}");
    let listed = text(root.get("/settings/people").await, StatusCode::OK).await;
    assert!(!listed.contains("lhl_") && listed.contains("bea") && listed.contains("tenant_1:"));
    assert!(
        listed.contains("2 people may sign in, 1 of them an admin"),
        "{listed}"
    );

    let bea = stage.browser();
    let secret = link.rsplit_once('=').unwrap().1;
    assert_eq!(
        bea.post("/sign-in", &[("link", secret)]).await.status(),
        StatusCode::SEE_OTHER
    );
    let again = stage.browser();
    assert_eq!(
        again.post("/sign-in", &[("link", secret)]).await.status(),
        StatusCode::GONE
    );
    let own = text(bea.get("/settings").await, StatusCode::OK).await;
    assert!(own.contains("Choose a password") && !own.contains("Present password"));
    assert_eq!(bea.get("/settings/people").await.status(), StatusCode::FORBIDDEN);
    let weak = bea.post("/settings/password", &[("password", "short")]).await;
    assert!(
        text(weak, StatusCode::UNPROCESSABLE_ENTITY)
            .await
            .contains("at least 12 characters")
    );
    let chosen = bea.post("/settings/password", &[("password", PASSWORD)]).await;
    assert_eq!(chosen.status(), StatusCode::SEE_OTHER);
    let elsewhere = stage.signed_in("bea").await;
    let wrong = [
        ("old", "not the present one"),
        ("password", "another long password"),
    ];
    let wrong = bea.post("/settings/password", &wrong).await;
    assert!(
        text(wrong, StatusCode::UNPROCESSABLE_ENTITY)
            .await
            .contains("not the present one")
    );
    let right = [("old", PASSWORD), ("password", "another long password")];
    assert_eq!(
        bea.post("/settings/password", &right).await.status(),
        StatusCode::SEE_OTHER
    );
    assert_eq!(
        elsewhere.get("/").await.status(),
        StatusCode::SEE_OTHER,
        "other sessions end"
    );
    assert_eq!(bea.get("/").await.status(), StatusCode::OK, "one's own goes on");

    let id = id_of(&stage, "bea").await;
    let path = format!("/settings/people/{id}/disable");
    assert_eq!(root.post(&path, &[]).await.status(), StatusCode::SEE_OTHER);
    assert_eq!(bea.get("/settings").await.status(), StatusCode::SEE_OTHER);
    let page = text(root.get(&format!("/settings/people/{id}")).await, StatusCode::OK).await;
    assert!(page.contains("bea is disabled"));
}

async fn id_of(stage: &Stage, name: &str) -> String {
    stage
        .identity()
        .directory()
        .person_named(name)
        .unwrap()
        .id
        .clone()
}

#[tokio::test]
async fn roles_are_edited_in_rows_and_the_last_admin_stays() {
    // Two rows and a spare one; then no row at all for the only admin.
    let stage = Stage::start().await;
    let root_id = stage.person("root", on(Role::Admin, None, None)).await;
    let bea_id = stage.person("bea", on(Role::Viewer, None, None)).await;
    let root = stage.signed_in("root").await;
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
    let path = format!("/settings/people/{bea_id}/grants");
    assert_eq!(root.post(&path, &rows).await.status(), StatusCode::SEE_OTHER);
    let grants = stage.identity().directory().people[&bea_id].grants.clone();
    let kept: Vec<_> = grants
        .iter()
        .map(|grant| (grant.role, grant.prefix.as_deref()))
        .collect();
    assert_eq!(kept, [(Role::Viewer, None), (Role::Operator, Some("a:"))]);
    let none = root
        .post(&format!("/settings/people/{root_id}/grants"), &[])
        .await;
    assert!(
        text(none, StatusCode::CONFLICT)
            .await
            .contains("The last admin cannot be taken away")
    );
    let unknown = root
        .post(&path, &[("role", "king"), ("backend", ""), ("prefix", "")])
        .await;
    assert_eq!(unknown.status(), StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn a_token_is_shown_once_on_its_page_and_revoked_there() {
    // It works; the list does not know it any more; revoked, it does not work.
    let stage = Stage::start().await;
    stage.person("root", on(Role::Admin, None, None)).await;
    let root = stage.signed_in("root").await;
    let form = [
        ("name", "billing"),
        ("role", "client"),
        ("backend", ""),
        ("prefix", "billing:"),
        ("days", "90"),
    ];
    let page = text(root.post("/settings/tokens", &form).await, StatusCode::CREATED).await;
    let token = secret_in(&page);
    let uses = async || {
        let request = Client::new().get(stage.url("/v1/me")).bearer_auth(&token);
        request.send().await.unwrap()
    };
    let me: Value = uses().await.json().await.unwrap();
    assert_eq!((&me["name"], &me["kind"]), (&json!("billing"), &json!("token")));
    let listed = text(root.get("/settings/tokens").await, StatusCode::OK).await;
    assert!(!listed.contains(&token) && listed.contains("in 89 d"), "{listed}");
    let twice = root.post("/settings/tokens", &form).await;
    assert!(text(twice, StatusCode::CONFLICT).await.contains("exists already"));
    let id = me["id"].as_str().unwrap();
    root.post(&format!("/settings/tokens/{id}/revoke"), &[]).await;
    assert_eq!(uses().await.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn sessions_are_listed_and_ended_by_admins_and_by_their_owner_alone() {
    // Bea ends her other one; she cannot end root's, which is answered like none; root ends hers.
    let stage = Stage::start().await;
    stage.person("root", on(Role::Admin, None, None)).await;
    let bea_id = stage.person("bea", on(Role::Viewer, None, None)).await;
    let (root, first, second) = (
        stage.signed_in("root").await,
        stage.signed_in("bea").await,
        stage.signed_in("bea").await,
    );
    let page = text(root.get("/settings/sessions").await, StatusCode::OK).await;
    assert!(page.contains("2 people are signed in, at 3 places"), "{page}");
    let sessions = stage.identity().sessions().await.unwrap();
    let of_root = sessions
        .iter()
        .find(|session| session.person_id != bea_id)
        .unwrap();
    let foreign = first
        .post(&format!("/settings/sessions/{}/end", of_root.id), &[])
        .await;
    assert_eq!(foreign.status(), StatusCode::NOT_FOUND);
    for session in sessions.iter().filter(|session| session.person_id == bea_id) {
        first
            .post(&format!("/settings/sessions/{}/end", session.id), &[])
            .await;
    }
    let alive = [&first, &second].map(async |browser| browser.get("/").await.status());
    let alive = futures::future::join_all(alive).await;
    assert!(alive.contains(&StatusCode::SEE_OTHER), "{alive:?}");
    assert_eq!(root.get("/").await.status(), StatusCode::OK);
}

/// As the holder of the token, with a body or without.
async fn send(
    stage: &Stage,
    admin: &Secret,
    act: (Method, &str),
    body: Option<Value>,
) -> (StatusCode, Value) {
    let mut request = Client::new().request(act.0, stage.url(act.1));
    if let Some(body) = body {
        request = request.json(&body);
    }
    call(request, admin).await
}

/// Each of them stands in the record.
async fn recorded(stage: &Stage, wanted: &[&str]) {
    let actions: Vec<String> = stage.record().await.into_iter().map(|row| row.action).collect();
    for action in wanted {
        assert!(
            actions.iter().any(|found| found == action),
            "{action}: {actions:?}"
        );
    }
}

#[tokio::test]
async fn the_api_of_people_does_what_their_pages_do() {
    // Added, given a link, roles and a password, disabled and enabled with an admin's token; each a row of the record.
    let stage = Stage::start().await;
    let admin = stage.token("admin", on(Role::Admin, None, None)).await;
    let send = async |method, path: &str, body| send(&stage, &admin, (method, path), body).await;
    let new = json!({"name": "bea", "grants": [{"role": "operator", "prefix": "tenant_1:"}]});
    let (status, added) = send(Method::POST, "/v1/people", Some(new.clone())).await;
    assert_eq!(status, StatusCode::CREATED, "{added}");
    assert_eq!(
        send(Method::POST, "/v1/people", Some(new)).await.0,
        StatusCode::CONFLICT
    );
    let path = format!("/v1/people/{}", added["id"].as_str().unwrap());
    let (status, link) = send(Method::POST, &format!("{path}/link"), None).await;
    assert_eq!(status, StatusCode::CREATED, "{link}");
    assert!(link["link"].as_str().unwrap().contains("/sign-in?link=lhl_"));
    for (part, body) in [
        (
            "grants",
            json!({"grants": [{"role": "viewer", "backend": "cache"}]}),
        ),
        ("password", json!({"password": PASSWORD})),
    ] {
        let (status, problem) = send(Method::PUT, &format!("{path}/{part}"), Some(body)).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "{problem}");
    }
    stage.signed_in("bea").await;
    let (_, people) = get(&stage, &admin, "/v1/people").await;
    let grants = json!([{"role": "viewer", "backend": "cache", "prefix": null}]);
    assert_eq!(people["people"][0]["grants"], grants);
    assert_eq!(people["people"][0]["hasPassword"], true);
    for (act, status) in [
        ("disable", StatusCode::NO_CONTENT),
        ("enable", StatusCode::NO_CONTENT),
        ("explode", StatusCode::NOT_FOUND),
    ] {
        assert_eq!(
            send(Method::POST, &format!("{path}/{act}"), None).await.0,
            status,
            "{act}"
        );
    }
    recorded(&stage, &["PERSON_CREATE", "PERSON_CHANGE", "PERSON_DISABLE"]).await;
}

#[tokio::test]
async fn the_api_refuses_bad_people_and_names_the_field() {
    // A name with a space, an unknown role, an unknown field, no list of grants, none at all.
    let stage = Stage::start().await;
    let admin = stage.token("admin", on(Role::Admin, None, None)).await;
    for bad in [
        json!({"name": "x y", "grants": []}),
        json!({"name": "ok", "grants": [{"role": "king"}]}),
        json!({"name": "ok", "grants": [{"role": "viewer", "extra": 1}]}),
        json!({"name": "ok", "grants": "viewer"}),
        json!({"name": "ok"}),
    ] {
        let (status, problem) = send(&stage, &admin, (Method::POST, "/v1/people"), Some(bad)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{problem}");
        assert!(problem["field"].is_string(), "{problem}");
    }
}

#[tokio::test]
async fn the_api_of_tokens_sessions_and_the_switch_does_what_their_pages_do() {
    // A token shown once and revoked; a session ended; the switch thrown; each a row of the record.
    let stage = Stage::start().await;
    let admin = stage.token("admin", on(Role::Admin, None, None)).await;
    stage.person("bea", on(Role::Viewer, None, None)).await;
    let bea = stage.signed_in("bea").await;
    let send = async |method, path: &str, body| send(&stage, &admin, (method, path), body).await;
    let token = json!({"name": "t", "grants": [{"role": "client"}], "expiresInSeconds": 60});
    let (status, made) = send(Method::POST, "/v1/tokens", Some(token)).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    assert!(made["token"].as_str().unwrap().starts_with("lht_"));
    let (_, tokens) = get(&stage, &admin, "/v1/tokens").await;
    assert!(!tokens.to_string().contains("lht_"));
    assert_eq!(
        send(Method::DELETE, "/v1/tokens/t", None).await.0,
        StatusCode::NO_CONTENT
    );
    let (_, sessions) = get(&stage, &admin, "/v1/sessions").await;
    let path = format!("/v1/sessions/{}", sessions["sessions"][0]["id"].as_str().unwrap());
    assert_eq!(send(Method::DELETE, &path, None).await.0, StatusCode::NO_CONTENT);
    assert_eq!(bea.get("/").await.status(), StatusCode::SEE_OTHER);
    let switch = Some(json!({"readOnly": true}));
    assert_eq!(
        send(Method::PUT, "/v1/read-only", switch).await.1["readOnly"],
        true
    );
    let (_, roles) = get(&stage, &admin, "/v1/roles").await;
    assert_eq!(roles["roles"].as_array().unwrap().len(), Role::ALL.len());
    let wanted = [
        "TOKEN_CREATE",
        "TOKEN_REVOKE",
        "SESSION_REVOKE",
        "READ_ONLY_CHANGE",
    ];
    recorded(&stage, &wanted).await;
}

#[tokio::test]
async fn the_last_use_of_a_token_is_known_at_once_here_and_within_seconds_elsewhere() {
    // Used once: on the next page of this server; then for another reader of the store. One never used says never.
    let stage = Stage::start().await;
    stage.person("root", on(Role::Admin, None, None)).await;
    let root = stage.signed_in("root").await;
    let used = stage.token("used", on(Role::Viewer, None, None)).await;
    stage.token("idle", on(Role::Viewer, None, None)).await;
    let page = text(root.get("/settings/tokens").await, StatusCode::OK).await;
    assert!(
        page.contains("2 tokens are good, 2 never used") && page.contains(">2 rows<"),
        "{page}"
    );
    get(&stage, &used, "/v1/me").await;
    let page = text(root.get("/settings/tokens").await, StatusCode::OK).await;
    assert!(page.contains("2 tokens are good, 1 never used"), "{page}");
    assert!(
        page.contains("just now") && page.contains("known here within 5 s"),
        "{page}"
    );
    let db = Db::open(&stage.store).await.unwrap();
    let audit = Audit::new(db.clone(), Clock::start(), Heads::default());
    let beside = Identity::open(db, audit, Clock::start()).await.unwrap();
    crate::support::eventually::within(std::time::Duration::from_secs(15), "the note", || async {
        let tokens = beside.tokens().await.unwrap();
        tokens
            .iter()
            .all(|token| (token.name == "idle") == token.used_at.is_none())
    })
    .await;
}

#[tokio::test]
async fn one_of_a_kind_is_one_row() {
    // A single person and a single token.
    let stage = Stage::start().await;
    stage.person("root", on(Role::Admin, None, None)).await;
    let root = stage.signed_in("root").await;
    stage.token("only", on(Role::Viewer, None, None)).await;
    for path in ["/settings/people", "/settings/tokens"] {
        let page = text(root.get(path).await, StatusCode::OK).await;
        assert!(page.contains(">1 row<"), "{path}: {page}");
    }
}
