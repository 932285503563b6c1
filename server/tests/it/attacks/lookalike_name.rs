//! A user or a token is named like another one, with letters of another script or letters that no screen shows, so that it is
//! taken for an approver.

use crate::support::{PASSWORD, TestServer, on};
use domain::access::Role;
use leasehold::identity::{IdentityError, NewToken, NewUser, Principal};

#[tokio::test]
async fn lookalike_names_are_refused() {
    let server = TestServer::builder().redis().start().await;
    let (identity, system) = (server.identity(), Principal::system("test"));
    for name in ["\u{430}dmin", "admin\u{3164}", "ad\u{34f}min", "\u{ff41}dmin"] {
        let new = NewUser {
            name: name.to_owned(),
            grants: on(Role::Approver, None, None),
            password: None,
        };
        let refused = identity.add_user(&system, new).await;
        let is_about_name = |error| matches!(error, IdentityError::Invalid { field: "name", .. });
        assert!(is_about_name(refused.unwrap_err()), "{name:?}");
        let new = NewToken {
            name: name.to_owned(),
            grants: on(Role::Client, None, None),
            expires_in: None,
        };
        let refused = identity.create_token(&system, new).await;
        assert!(is_about_name(refused.unwrap_err()), "{name:?}");
    }
}

#[tokio::test]
async fn setup_link_stays_usable_after_a_refused_name() {
    // A taken name, and one with a letter of another script: a refused name once used up the link.
    let server = TestServer::builder().redis().start().await;
    server.add_user("ada", on(Role::Viewer, None, None)).await;
    let link = server.identity().setup_link().await.unwrap().unwrap();
    let browser = server.browser();
    let form = |name: &'static str| [("link", link.expose()), ("name", name), ("password", PASSWORD)];
    for name in ["ada", "\u{430}dmin"] {
        let refused = browser.post("/setup", &form(name)).await;
        assert!(refused.status().is_client_error(), "{name}: {}", refused.status());
    }
    assert_eq!(browser.post("/setup", &form("root")).await.status(), 303);
    assert_eq!(browser.post("/setup", &form("eve")).await.status(), 410);
}
