//! A user or a token is named like another one, with letters of another script or letters that no screen shows, so that it is
//! taken for an approver.

use domain::access::Role;
use leasehold::identity::{IdentityError, NewPerson, NewToken, Who};

use crate::people::stage::{PASSWORD, Stage, on};

#[tokio::test]
async fn names_that_look_like_another_are_refused() {
    let stage = Stage::start().await;
    let (identity, system) = (stage.identity(), Who::system("test"));
    for name in ["\u{430}dmin", "admin\u{3164}", "ad\u{34f}min", "\u{ff41}dmin"] {
        let new = NewPerson {
            name: name.to_owned(),
            grants: on(Role::Approver, None, None),
            password: None,
        };
        let refused = identity.add_person(&system, new).await;
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
    // A name that is taken, by a user who is no admin: the link was once spent on it.
    let stage = Stage::start().await;
    stage.person("ada", on(Role::Viewer, None, None)).await;
    let link = stage.identity().setup_link().await.unwrap().unwrap();
    let browser = stage.browser();
    let form = |name: &'static str| [("link", link.expose()), ("name", name), ("password", PASSWORD)];
    for name in ["ada", "\u{430}dmin"] {
        let refused = browser.post("/setup", &form(name)).await;
        assert!(refused.status().is_client_error(), "{name}: {}", refused.status());
    }
    assert_eq!(browser.post("/setup", &form("root")).await.status(), 303);
    assert_eq!(browser.post("/setup", &form("eve")).await.status(), 410);
}
