//! A stolen session of an admin makes links and sessions to outlive itself. A new password and disabling end them.

use super::credentials_of_stolen_token::{link, make, works};
use crate::support::{PASSWORD, Store, TestCaller, TestServer, code, on};
use crate::unlock::pages::see;
use domain::access::Role;
use leasehold::audit::{Audit, ChainCheckpoints, Origin};
use leasehold::identity::{Identity, IdentityError, NewToken, Principal, Subject};
use reqwest::Method;
use runtime::clock::Clock;
use runtime::db::Db;
use serde_json::json;

async fn is_usable(server: &TestServer, link: &str) -> bool {
    let identity = server.identity();
    identity.check_user_link(link, &Origin::default()).await.is_ok()
}

#[tokio::test]
async fn no_link_or_password_for_oneself_over_the_api() {
    // Its session would be fresh without the password, again and again. Another user gets one, and so does this user by
    // the command on the server.
    let server = TestServer::start().await;
    let ada = server.user("ada", on(Role::Admin, None, None)).await;
    server.user("bob", on(Role::Viewer, None, None)).await;
    let (own, other) = (server.user_id("ada"), server.user_id("bob"));
    let make_link = async |user: &str| {
        let path = format!("/v1/users/{user}/link");
        server.as_user(&ada).post(&path, &json!({})).await
    };
    let refused = make_link(&own).await;
    assert_eq!(code(&refused), (400, "invalid"), "{}", refused.1);
    assert_eq!(refused.1["field"], "user");
    let detail = refused.1["detail"].as_str().unwrap();
    assert!(detail.contains("`leasehold user link`"), "{detail}");
    assert_eq!(make_link(&other).await.0, 201);
    // Nor a password, which would need the current one.
    let path = format!("/v1/users/{own}/password");
    let password = json!({"password": PASSWORD});
    let refused = server.as_user(&ada).json(Method::PUT, &path, &password).await;
    assert_eq!(code(&refused), (400, "invalid"), "{}", refused.1);
    for (user, is_offered) in [(&own, false), (&other, true)] {
        let page = see(&server, &ada, &format!("/settings/users/{user}")).await;
        let text = &page.is(200).text;
        assert_eq!(text.contains("Create a sign-in link"), is_offered, "{text}");
    }
    server.sign_in("ada").await;
}

#[tokio::test]
async fn unused_links_end_with_a_new_password_or_disabling() {
    for home in [Store::sqlite(), Store::postgres().await] {
        let server = TestServer::builder().start_on(home).await;
        let (identity, system) = (server.identity(), Principal::system("test"));
        let root = server.user("root", on(Role::Admin, None, None)).await;
        server.user("bob", on(Role::Viewer, None, None)).await;
        server.user("carol", on(Role::Viewer, None, None)).await;
        let bob = server.user_id("bob");
        let of_carol = link(&server, &root, &server.user_id("carol")).await;
        let of_bob = link(&server, &root, &bob).await;
        assert!(is_usable(&server, &of_bob).await);
        let password = PASSWORD.into();
        identity.set_password(&system, &bob, &password).await.unwrap();
        assert!(!is_usable(&server, &of_bob).await);
        let of_bob = link(&server, &root, &bob).await;
        identity.disable_user(&system, &bob).await.unwrap();
        identity.enable_user(&system, &bob).await.unwrap();
        assert!(!is_usable(&server, &of_bob).await);
        assert!(is_usable(&server, &of_carol).await);
    }
}

#[tokio::test]
async fn disabling_ends_access_that_the_user_gave_to_others() {
    // Ada opens the account of bob by a link, and as bob that of dave. The credentials that eve and ada's token created keep
    // working.
    for home in [Store::sqlite(), Store::postgres().await] {
        let server = TestServer::builder().start_on(home).await;
        let ada = server.user("ada", on(Role::Admin, None, None)).await;
        let eve = server.user("eve", on(Role::Admin, None, None)).await;
        let own_bob = server.user("bob", on(Role::Admin, None, None)).await;
        for name in ["carol", "dave"] {
            server.user(name, on(Role::Viewer, None, None)).await;
        }
        let open_by = async |maker: &TestCaller, name: &str| {
            let made = link(&server, maker, &server.user_id(name)).await;
            server.open_link(&made).await
        };
        let bob = open_by(&ada, "bob").await;
        let dave = open_by(&bob, "dave").await;
        let carol = open_by(&eve, "carol").await;
        let token = make(&server, &ada, "automation").await;
        let unused = link(&server, &ada, &server.user_id("carol")).await;
        let unused_of_dave = link(&server, &bob, &server.user_id("dave")).await;
        let unused_of_eve = link(&server, &own_bob, &server.user_id("eve")).await;
        for caller in [&ada, &bob, &dave, &carol, &token] {
            assert!(works(&server, caller).await, "{caller:?}");
        }
        let (system, ada_id) = (Principal::system("test"), server.user_id("ada"));
        server.identity().disable_user(&system, &ada_id).await.unwrap();
        for caller in [&ada, &bob, &dave] {
            assert!(!works(&server, caller).await, "{caller:?}");
        }
        assert!(!is_usable(&server, &unused).await && !is_usable(&server, &unused_of_dave).await);
        for caller in [&eve, &own_bob, &carol, &token] {
            assert!(works(&server, caller).await, "{caller:?}");
        }
        assert!(is_usable(&server, &unused_of_eve).await);
    }
}

#[tokio::test]
async fn disabling_the_middle_of_a_chain_ends_what_follows() {
    // Ada opens the account of bob by a link, as bob that of dave, and as dave that of carol: bob is disabled.
    for home in [Store::sqlite(), Store::postgres().await] {
        let server = TestServer::builder().start_on(home).await;
        let ada = server.user("ada", on(Role::Admin, None, None)).await;
        for name in ["bob", "dave", "carol"] {
            server.add_user(name, on(Role::Admin, None, None)).await;
        }
        let open_by = async |maker: &TestCaller, name: &str| {
            let made = link(&server, maker, &server.user_id(name)).await;
            server.open_link(&made).await
        };
        let bob = open_by(&ada, "bob").await;
        let dave = open_by(&bob, "dave").await;
        let carol = open_by(&dave, "carol").await;
        let unused = link(&server, &carol, &server.user_id("dave")).await;
        let token = make(&server, &carol, "by-carol").await;
        let (system, bob_id) = (Principal::system("test"), server.user_id("bob"));
        let active = server.identity().disable_user(&system, &bob_id).await.unwrap();
        let active: Vec<&str> = active.iter().map(|token| token.name.as_str()).collect();
        assert_eq!(active, ["by-carol"]);
        for caller in [&bob, &dave, &carol] {
            assert!(!works(&server, caller).await, "{caller:?}");
        }
        assert!(!is_usable(&server, &unused).await);
        assert!(works(&server, &ada).await && works(&server, &token).await);
    }
}

#[tokio::test]
async fn a_session_that_has_ended_creates_nothing() {
    // It ends between the authentication of its requests and their changes.
    for home in [Store::sqlite(), Store::postgres().await] {
        let server = TestServer::builder().start_on(home).await;
        let (identity, system) = (server.identity(), Principal::system("test"));
        let ada = server.user("ada", on(Role::Admin, None, None)).await;
        let bob = server.add_user("bob", on(Role::Viewer, None, None)).await;
        let session = identity.session(ada.secret(), true).await.unwrap().unwrap();
        identity.end_session(&system, &session.id).await.unwrap();
        let who = Principal {
            subject: Subject::User {
                id: session.user_id.as_str().into(),
                name: "ada".into(),
            },
            session: Some(session.into()),
            ..system
        };
        let new = NewToken {
            name: "child".to_owned(),
            grants: on(Role::Admin, None, None),
            expires_in: None,
        };
        let refused = [
            identity.user_link(&who, &bob).await.err(),
            identity.create_token(&who, new).await.err(),
        ];
        for error in refused {
            assert!(matches!(error, Some(IdentityError::AccessEnded)), "{error:?}");
        }
    }
}

#[tokio::test]
async fn a_disabled_user_creates_nothing_on_a_replica_behind() {
    // The other replica has not read yet that ada is disabled: a link that it made now would open the account of bob.
    for home in [Store::sqlite(), Store::postgres().await] {
        let server = TestServer::builder().start_on(home).await;
        let ada = server.add_user("ada", on(Role::Admin, None, None)).await;
        let bob = server.add_user("bob", on(Role::Viewer, None, None)).await;
        let db = Db::open(&server.store.url).await.unwrap();
        let audit = Audit::new(db.clone(), Clock::start(), ChainCheckpoints::default());
        let behind = Identity::open(db, audit, Clock::start()).await.unwrap();
        let system = Principal::system("test");
        let who = Principal {
            subject: Subject::User {
                id: ada.as_str().into(),
                name: "ada".into(),
            },
            ..system.clone()
        };
        server.add_user("eve", on(Role::Admin, None, None)).await;
        server.identity().disable_user(&system, &ada).await.unwrap();
        let new = NewToken {
            name: "child".to_owned(),
            grants: on(Role::Admin, None, None),
            expires_in: None,
        };
        let refused = [
            behind.user_link(&who, &bob).await.err(),
            behind.create_token(&who, new).await.err(),
        ];
        for error in refused {
            assert!(matches!(error, Some(IdentityError::AccessEnded)), "{error:?}");
        }
    }
}
