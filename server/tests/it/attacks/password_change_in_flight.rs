//! The user of a stolen session and password changes the password while an admin resets it, disables the user or ends the session.

use super::sign_in_in_flight::work_during;
use crate::support::{PASSWORD, Store, TestServer, on};
use domain::access::Role;
use leasehold::audit::Origin;
use leasehold::identity::{IdentityError, NewUser, Principal};
use reqwest::Method;

const OWN: &str = "password of the thief";
const RESET: &str = "password of the admin";

#[tokio::test]
async fn own_password_change_does_not_undo_a_reset() {
    // Ada has a password, bob none yet; the reset gives each that of eve.
    for home in [Store::sqlite(), Store::postgres().await] {
        let server = TestServer::builder().start_on(home).await;
        let identity = server.identity();
        let eve = NewUser {
            name: "eve".to_owned(),
            grants: on(Role::Viewer, None, None),
            password: Some(RESET.into()),
        };
        identity.add_user(&Principal::system("test"), eve).await.unwrap();
        server.add_user("ada", on(Role::Viewer, None, None)).await;
        let ada = server.sign_in("ada").await;
        let bob = server.user("bob", on(Role::Viewer, None, None)).await;
        for (name, caller, reset) in [
            (
                "ada",
                ada,
                "UPDATE users SET password_hash = (SELECT password_hash FROM users WHERE name = 'eve')
                    WHERE name = 'ada'",
            ),
            (
                "bob",
                bob,
                "UPDATE users SET password_hash = (SELECT password_hash FROM users WHERE name = 'eve')
                    WHERE name = 'bob'",
            ),
        ] {
            let form = [("old", PASSWORD), ("password", OWN)];
            let request = server
                .as_user(&caller)
                .request(Method::POST, "/settings/password");
            let changing = crate::support::form::Form::form(request, &form).send();
            let refused = work_during(&server, reset, changing).await.unwrap();
            let (status, text) = (refused.status(), refused.text().await.unwrap());
            assert_eq!(status, 409, "{name}: {text}");
            assert!(text.contains("changed your password first"), "{name}: {text}");
            let sign_in = async |password: &'static str| {
                let (password, origin) = (password.into(), Origin::default());
                Box::pin(identity.sign_in(name, &password, &origin)).await
            };
            sign_in(RESET).await.unwrap();
            let by_thief = sign_in(OWN).await;
            let is_wrong = matches!(by_thief, Err(IdentityError::WrongPassword));
            assert!(is_wrong, "{name}: {by_thief:?}");
        }
    }
}

#[tokio::test]
async fn own_password_change_ends_with_the_access() {
    // Ada is disabled and later enabled; the session of bob, who has no password, is ended.
    for home in [Store::sqlite(), Store::postgres().await] {
        let server = TestServer::builder().start_on(home).await;
        let (identity, system) = (server.identity(), Principal::system("test"));
        let id = server.add_user("ada", on(Role::Viewer, None, None)).await;
        let ada = server.sign_in("ada").await;
        let bob = server.user("bob", on(Role::Viewer, None, None)).await;
        for (name, caller, end) in [
            ("ada", ada, "UPDATE users SET disabled_at = 1 WHERE name = 'ada'"),
            (
                "bob",
                bob,
                "UPDATE sessions SET ended_at = 1 WHERE user_id = (SELECT id FROM users WHERE name = 'bob')",
            ),
        ] {
            let form = [("old", PASSWORD), ("password", OWN)];
            let request = server
                .as_user(&caller)
                .request(Method::POST, "/settings/password");
            let changing = crate::support::form::Form::form(request, &form).send();
            let refused = work_during(&server, end, changing).await.unwrap();
            let (status, text) = (refused.status(), refused.text().await.unwrap());
            assert_eq!(status, 401, "{name}: {text}");
        }
        identity.enable_user(&system, &id).await.unwrap();
        for name in ["ada", "bob"] {
            let (password, origin) = (OWN.into(), Origin::default());
            let by_thief = Box::pin(identity.sign_in(name, &password, &origin)).await;
            let is_wrong = matches!(by_thief, Err(IdentityError::WrongPassword));
            assert!(is_wrong, "{name}: {by_thief:?}");
        }
    }
}
