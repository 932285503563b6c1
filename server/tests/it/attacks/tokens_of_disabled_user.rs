//! A former admin created tokens for later. They keep working, so disabling the admin lists them, and the page of the user
//! revokes them.

use super::credentials_of_stolen_token::{make, works};
use crate::support::{Store, TestServer, on, reply};
use crate::unlock::pages::{post, see};
use domain::access::Role;
use leasehold::audit::Origin;
use leasehold::identity::{NewToken, Principal, Subject};
use reqwest::Method;
use serde_json::{Value, json};

#[tokio::test]
async fn disabling_a_user_names_their_active_tokens() {
    // One by a session, one by that token; not the revoked one, the expired one, and that of another user.
    for home in [Store::sqlite(), Store::postgres().await] {
        let server = TestServer::builder().start_on(home).await;
        let (identity, system) = (server.identity(), Principal::system("test"));
        let root = server.user("root", on(Role::Admin, None, None)).await;
        let ada = server.user("ada", on(Role::Admin, None, None)).await;
        let id = server.user_id("ada");
        let first = make(&server, &ada, "first").await;
        let second = make(&server, &first, "second").await;
        make(&server, &ada, "revoked").await;
        identity.revoke_token(&system, "revoked").await.unwrap();
        let mut by_ada = Principal::anonymous(Origin::default());
        by_ada.subject = Subject::User {
            id: id.as_str().into(),
            name: "ada".into(),
        };
        let expired = NewToken {
            name: "expired".to_owned(),
            grants: on(Role::Viewer, None, None),
            expires_in: Some(std::time::Duration::ZERO),
        };
        identity.create_token(&by_ada, expired).await.unwrap();
        make(&server, &root, "unrelated").await;

        let path = format!("/v1/users/{id}/disable");
        let disable = async || {
            let request = server.as_user(&root).request(Method::POST, &path);
            let (status, answer) = reply(request).await;
            assert_eq!(status, 200, "{answer}");
            let tokens = answer["activeTokens"].as_array().unwrap().iter();
            tokens.map(|token| token["name"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(disable().await, ["first", "second"]);
        let entry = &server.audit_entries().await[0];
        assert_eq!(entry.action, "USER_DISABLE");
        let after: Value = serde_json::from_str(entry.after.as_deref().unwrap()).unwrap();
        assert_eq!(after, json!({"activeTokens": ["first", "second"]}));
        // Disabled already.
        assert_eq!(disable().await, ["first", "second"]);
        assert!(works(&server, &first).await && works(&server, &second).await);

        let address = format!("/settings/users/{id}");
        let page = see(&server, &root, &address).await;
        let text = &page.is(200).text;
        assert!(
            text.contains("Revoke first") && text.contains("Revoke second"),
            "{text}"
        );
        assert!(
            !text.contains("expired</th>") && !text.contains("unrelated"),
            "{text}"
        );
        let tokens = identity.active_tokens_of(&id).await.unwrap();
        let revoke = format!("/settings/tokens/{}/revoke", tokens[0].id);
        assert!(text.contains(&revoke), "{text}");
        post(&server, &root, &revoke, &[]).await.is(303);
        assert!(!works(&server, &first).await && !works(&server, &second).await);
        let page = see(&server, &root, &address).await;
        assert!(!page.is(200).text.contains("Active API tokens"), "{}", page.text);
    }
}
