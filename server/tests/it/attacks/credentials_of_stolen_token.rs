//! A stolen admin token makes tokens, links, sessions and its own successor to outlive itself. Revoking it revokes them.

use crate::support::{PASSWORD, Store, TestCaller, TestServer, on, reply};
use domain::access::Role;
use leasehold::audit::{Audit, ChainCheckpoints, Origin};
use leasehold::identity::{Identity, IdentityError, NewToken, NewUser, Principal, Subject};
use reqwest::Method;
use runtime::clock::Clock;
use runtime::db::Db;
use serde_json::{Value, json};

pub(super) async fn make(server: &TestServer, caller: &TestCaller, name: &str) -> TestCaller {
    let body = json!({"name": name, "grants": [{"role": "admin"}]});
    let (status, made) = reply(
        server
            .as_user(caller)
            .request(Method::POST, "/v1/tokens")
            .json(&body),
    )
    .await;
    assert_eq!(status, 201, "{made}");
    TestCaller::Token(made["token"].as_str().unwrap().to_owned())
}

pub(super) async fn link(server: &TestServer, caller: &TestCaller, user: &str) -> String {
    let path = format!("/v1/users/{user}/link");
    let (status, made) = reply(server.as_user(caller).request(Method::POST, &path)).await;
    assert_eq!(status, 201, "{made}");
    let text = made["link"].as_str().unwrap();
    text.split_once("link=").unwrap().1.to_owned()
}

pub(super) async fn works(server: &TestServer, caller: &TestCaller) -> bool {
    server.as_user(caller).get("/v1/me").await.0 == 200
}

#[tokio::test]
async fn revoking_a_token_revokes_the_tokens_it_created() {
    for home in [Store::sqlite(), Store::postgres().await] {
        let server = TestServer::builder().start_on(home).await;
        let stolen = server.token("stolen", on(Role::Admin, None, None)).await;
        let beside = server.token("beside", on(Role::Admin, None, None)).await;
        let child = make(&server, &stolen, "child").await;
        let grandchild = make(&server, &child, "grandchild").await;
        let other = make(&server, &beside, "other").await;
        server.user("bob", on(Role::Viewer, None, None)).await;
        let bob = server
            .identity()
            .directory()
            .user_named("bob")
            .unwrap()
            .id
            .clone();
        let opened = link(&server, &child, &bob).await;
        let opened = server
            .identity()
            .open_link(&opened, &Origin::default())
            .await
            .unwrap();
        let session = TestCaller::Session(opened.secret.expose().to_owned());
        let unused = link(&server, &child, &bob).await;
        for caller in [&stolen, &child, &grandchild, &session, &other] {
            assert!(works(&server, caller).await, "{caller:?}");
        }
        let identity = server.identity();
        identity
            .revoke_token(&Principal::system("test"), "stolen")
            .await
            .unwrap();
        for caller in [&stolen, &child, &grandchild, &session] {
            assert!(!works(&server, caller).await, "{caller:?}");
        }
        assert!(identity.open_link(&unused, &Origin::default()).await.is_err());
        assert!(works(&server, &other).await && works(&server, &beside).await);
        // The entry names them all; the user bob, whom none of them created, stays.
        let query = domain::audit::AuditQuery {
            limit: 10,
            action: Some(domain::audit::Action::TokenRevoke),
            ..Default::default()
        };
        let entries = server.audit().await.page(&query).await.unwrap().rows;
        let before: Value = serde_json::from_str(entries[0].before.as_deref().unwrap()).unwrap();
        let mut revoked: Vec<&str> = before["revoked"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        revoked.sort_unstable();
        assert_eq!(revoked, ["child", "grandchild", "stolen"]);
        assert!(
            identity
                .directory()
                .user_named("bob")
                .unwrap()
                .disabled_at
                .is_none()
        );
    }
}

#[tokio::test]
async fn revoking_a_token_ends_what_its_sessions_created() {
    // The stolen token opens a session of bob, who creates a token and opens a session of dave, who does the same. What bob
    // created in a session of his own stays.
    for home in [Store::sqlite(), Store::postgres().await] {
        let server = TestServer::builder().start_on(home).await;
        let stolen = server.token("stolen", on(Role::Admin, None, None)).await;
        let own_session = server.user("bob", on(Role::Admin, None, None)).await;
        server.add_user("dave", on(Role::Admin, None, None)).await;
        let (bob, dave) = (server.user_id("bob"), server.user_id("dave"));
        let of_bob = server.open_link(&link(&server, &stolen, &bob).await).await;
        let by_bob = make(&server, &of_bob, "by-bob").await;
        let of_dave = server.open_link(&link(&server, &of_bob, &dave).await).await;
        let by_dave = make(&server, &of_dave, "by-dave").await;
        let unused = link(&server, &of_dave, &bob).await;
        let own = make(&server, &own_session, "own").await;
        let (_, listed) = server.as_user(&own).get("/v1/tokens").await;
        let tokens = listed["tokens"].as_array().unwrap();
        let listed = tokens.iter().find(|token| token["name"] == "by-bob").unwrap();
        assert_eq!(listed["createdById"], json!(bob), "{listed}");
        let came_from_it = [&stolen, &of_bob, &by_bob, &of_dave, &by_dave];
        for caller in came_from_it {
            assert!(works(&server, caller).await, "{caller:?}");
        }
        let identity = server.identity();
        let system = Principal::system("test");
        identity.revoke_token(&system, "stolen").await.unwrap();
        for caller in came_from_it {
            assert!(!works(&server, caller).await, "{caller:?}");
        }
        assert!(identity.open_link(&unused, &Origin::default()).await.is_err());
        assert!(works(&server, &own_session).await && works(&server, &own).await);
    }
}

#[tokio::test]
async fn revoking_a_token_revokes_the_successor_it_created() {
    // The successor that another admin created for the same token stays.
    for home in [Store::sqlite(), Store::postgres().await] {
        let server = TestServer::builder().start_on(home).await;
        let root = server.user("root", on(Role::Admin, None, None)).await;
        let stolen = server.token("stolen", on(Role::Admin, None, None)).await;
        let succeed = async |caller: &TestCaller, name: &str| {
            let body = json!({"name": name, "grants": [{"role": "admin"}], "successorOf": "stolen"});
            let made = server
                .as_user(caller)
                .done(Method::POST, "/v1/tokens", &body)
                .await;
            TestCaller::Token(made["token"].as_str().unwrap().to_owned())
        };
        let own = succeed(&stolen, "own").await;
        let rotated = succeed(&root, "rotated").await;
        let system = Principal::system("test");
        server.identity().revoke_token(&system, "stolen").await.unwrap();
        assert!(!works(&server, &own).await && !works(&server, &stolen).await);
        assert!(works(&server, &rotated).await);
    }
}

#[tokio::test]
async fn the_user_behind_a_token_chain_is_listed() {
    let server = TestServer::start().await;
    let root = server.user("root", on(Role::Admin, None, None)).await;
    let child = make(&server, &root, "child").await;
    make(&server, &child, "grandchild").await;
    let (_, listed) = server.as_user(&child).get("/v1/tokens").await;
    let tokens = listed["tokens"].as_array().unwrap();
    let grandchild = tokens.iter().find(|token| token["name"] == "grandchild").unwrap();
    assert_eq!(
        (&grandchild["createdBy"], &grandchild["root"]),
        (&json!("child"), &json!("root"))
    );
    crate::unlock::pages::see(&server, &root, "/settings/tokens")
        .await
        .has("child, for root");
}

#[tokio::test]
async fn a_revoked_token_creates_nothing_on_a_replica_behind() {
    // The other replica has not read the revocation yet: what it created now would outlive the token.
    for home in [Store::sqlite(), Store::postgres().await] {
        let server = TestServer::builder().start_on(home).await;
        let stolen = server.token("stolen", on(Role::Admin, None, None)).await;
        let bob = server.add_user("bob", on(Role::Viewer, None, None)).await;
        let db = Db::open(&server.store.url).await.unwrap();
        let audit = Audit::new(db.clone(), Clock::start(), ChainCheckpoints::default());
        let behind = Identity::open(db, audit, Clock::start()).await.unwrap();
        let token = behind.token(stolen.secret()).await.unwrap().unwrap();
        let system = Principal::system("test");
        let who = Principal {
            subject: Subject::Token {
                id: token.id.clone(),
                name: token.name.clone(),
            },
            ..system.clone()
        };
        server.identity().revoke_token(&system, "stolen").await.unwrap();
        let child = NewToken {
            name: "child".to_owned(),
            grants: on(Role::Admin, None, None),
            expires_in: None,
        };
        let user = NewUser {
            name: "eve".to_owned(),
            grants: on(Role::Admin, None, None),
            password: Some(PASSWORD.into()),
        };
        let refused = [
            behind.create_token(&who, child).await.err(),
            behind.user_link(&who, &bob).await.err(),
            behind.add_user(&who, user).await.err(),
            behind.set_password(&who, &bob, &PASSWORD.into()).await.err(),
        ];
        for error in refused {
            assert!(matches!(error, Some(IdentityError::AccessEnded)), "{error:?}");
        }
    }
}
