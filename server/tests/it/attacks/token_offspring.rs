//! A stolen admin token makes tokens, links and sessions to outlive itself. Revoking it revokes them.

use domain::access::Role;
use leasehold::audit::Origin;
use leasehold::identity::Who;
use reqwest::Method;
use serde_json::{Value, json};

use crate::unlock::stage::{Caller, Home, Stage, answered, on};

async fn make(stage: &Stage, caller: &Caller, name: &str) -> Caller {
    let body = json!({"name": name, "grants": [{"role": "admin"}]});
    let (status, made) = answered(stage.request(caller, Method::POST, "/v1/tokens").json(&body)).await;
    assert_eq!(status, 201, "{made}");
    Caller::Token(made["token"].as_str().unwrap().to_owned())
}

async fn link(stage: &Stage, caller: &Caller, person: &str) -> String {
    let path = format!("/v1/people/{person}/link");
    let (status, made) = answered(stage.request(caller, Method::POST, &path)).await;
    assert_eq!(status, 201, "{made}");
    let text = made["link"].as_str().unwrap();
    text.split_once("link=").unwrap().1.to_owned()
}

async fn works(stage: &Stage, caller: &Caller) -> bool {
    stage.get(caller, "/v1/me").await.0 == 200
}

#[tokio::test]
async fn revoking_a_token_revokes_what_it_made() {
    for home in [Home::sqlite(), Home::postgres().await] {
        let stage = Stage::on(home, "").await;
        let stolen = stage.token("stolen", on(Role::Admin, None, None)).await;
        let beside = stage.token("beside", on(Role::Admin, None, None)).await;
        let child = make(&stage, &stolen, "child").await;
        let grandchild = make(&stage, &child, "grandchild").await;
        let other = make(&stage, &beside, "other").await;
        stage.person("bob", on(Role::Viewer, None, None)).await;
        let bob = stage
            .identity()
            .directory()
            .person_named("bob")
            .unwrap()
            .id
            .clone();
        let opened = link(&stage, &child, &bob).await;
        let opened = stage
            .identity()
            .open_link(&opened, &Origin::default())
            .await
            .unwrap();
        let session = Caller::Browser(opened.secret.expose().to_owned());
        let unused = link(&stage, &child, &bob).await;
        for caller in [&stolen, &child, &grandchild, &session, &other] {
            assert!(works(&stage, caller).await, "{caller:?}");
        }
        let identity = stage.identity();
        identity
            .revoke_token(&Who::system("test"), "stolen")
            .await
            .unwrap();
        for caller in [&stolen, &child, &grandchild, &session] {
            assert!(!works(&stage, caller).await, "{caller:?}");
        }
        assert!(identity.open_link(&unused, &Origin::default()).await.is_err());
        assert!(works(&stage, &other).await && works(&stage, &beside).await);
        // The entry names them all; the user, whom others know too, stays.
        let query = domain::audit::AuditQuery {
            limit: 10,
            action: Some(domain::audit::Action::TokenRevoke),
            ..Default::default()
        };
        let entries = stage.audit().await.page(&query).await.unwrap().rows;
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
                .person_named("bob")
                .unwrap()
                .disabled_at
                .is_none()
        );
    }
}

#[tokio::test]
async fn the_person_behind_a_chain_of_tokens_is_listed() {
    let stage = Stage::start().await;
    let root = stage.person("root", on(Role::Admin, None, None)).await;
    let child = make(&stage, &root, "child").await;
    make(&stage, &child, "grandchild").await;
    let (_, listed) = stage.get(&child, "/v1/tokens").await;
    let tokens = listed["tokens"].as_array().unwrap();
    let grandchild = tokens.iter().find(|token| token["name"] == "grandchild").unwrap();
    assert_eq!(
        (&grandchild["createdBy"], &grandchild["root"]),
        (&json!("child"), &json!("root"))
    );
    crate::unlock::pages::see(&stage, &root, "/settings/tokens")
        .await
        .has("child, for root");
}
