//! Sign-in through the provider, the resulting permissions, and an unknown user or a provider that is down.

use crate::support::token;
use crate::support::{PASSWORD, TestCaller, on};
use std::net::IpAddr;
use std::sync::Arc;

use domain::access::Role;
use domain::names::BackendName;
use domain::unlock::ProtectionLevel;
use leasehold::identity::{Principal, Session, Subject};
use leasehold::unlock::UnlockRequest;
use reqwest::{Client, Method, StatusCode, header, redirect};
use serde_json::json;

use super::provider::{Lie, Visitor};
use super::provider_sign_in::{ProviderSignIn, cookies, location};
use crate::support::form::Form as _;
use testkit::eventually;

#[tokio::test]
async fn a_provider_user_gets_the_roles_of_the_claim() {
    // By the button, back to the requested page; then with another group, whose permissions apply from then on.
    let flow = ProviderSignIn::start().await;
    let page = flow
        .http
        .get(flow.url("/sign-in?next=%2Flocks"))
        .send()
        .await
        .unwrap();
    let page = page.text().await.unwrap();
    assert!(
        page.contains("Sign in with ") && page.contains("Example ID"),
        "{page}"
    );
    assert!(page.contains("href=\"/sign-in/oidc?next=%2Flocks\""), "{page}");
    let back = flow.go("/sign-in/oidc?next=%2Flocks").await;
    let answer = flow.come_back(&back).await;
    assert_eq!(
        (answer.status(), location(&answer).as_str()),
        (StatusCode::SEE_OTHER, "/locks")
    );
    let set = cookies(&answer);
    assert!(
        set[0].starts_with("leasehold=lhs_") && set[1] == "leasehold-oidc=",
        "{set:?}"
    );
    let me = flow.me(&set[0]).await;
    assert_eq!(me["name"], "ada", "{me}");
    assert_eq!(
        me["grants"],
        json!([{"role": "operator", "backend": null, "prefix": "team_1:"}])
    );
    let rows = flow.console.audit_entries().await;
    let recorded: Vec<_> = rows
        .iter()
        .map(|row| (row.action.as_str(), row.actor_name.as_str()))
        .collect();
    assert_eq!(recorded, [("LOGIN", "ada"), ("USER_CREATE", "ada")]);
    assert!(rows[0].after.as_ref().unwrap().contains("\"oidc\""));

    flow.provider.visit(Visitor {
        groups: vec!["lock-admins", "others"],
        ..flow.provider.visitor()
    });
    let session = flow.sign_in().await;
    let grants = json!([{"role": "admin", "backend": null, "prefix": null}]);
    assert_eq!(flow.me(&session).await["grants"], grants);
    let rows = flow.console.audit_entries().await;
    assert_eq!(
        (rows[1].action.as_str(), rows[1].outcome.as_str()),
        ("USER_CHANGE", "ok")
    );
    let users = flow.console.serving.identity().directory().users.len();
    assert_eq!(users, 1);
}

#[tokio::test]
async fn a_user_is_identified_by_the_subject_only() {
    // The same subject under another name stays the same user; another subject with the name of a local admin is a new
    // user, with another name and none of the admin's permissions.
    let flow = ProviderSignIn::start().await;
    flow.console.add_user("root", on(Role::Admin, None, None)).await;
    let first = flow.me(&flow.sign_in().await).await;
    flow.provider.visit(Visitor {
        name: "ada.lovelace",
        ..flow.provider.visitor()
    });
    let renamed = flow.me(&flow.sign_in().await).await;
    assert_eq!((&first["id"], &first["name"]), (&renamed["id"], &renamed["name"]));
    flow.provider.visit(Visitor {
        subject: "s-2",
        name: "root",
        ..flow.provider.visitor()
    });
    let other = flow.me(&flow.sign_in().await).await;
    assert_eq!(other["name"], "root+2");
    assert_ne!(other["id"], first["id"]);
    assert_eq!(other["grants"], first["grants"]);
}

#[tokio::test]
async fn rotated_provider_keys_are_used_and_old_ones_rejected() {
    // A sign-in by the first key, the next one by the second, and then one that still uses the first.
    let flow = ProviderSignIn::start().await;
    flow.sign_in().await;
    flow.provider.rotate();
    flow.sign_in().await;
    flow.provider.lie(Lie::FirstKey);
    let back = flow.go("/sign-in/oidc").await;
    let answer = flow.come_back(&back).await;
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
    let rows = flow.console.audit_entries().await;
    let after = rows[0].after.as_ref().unwrap();
    assert!(after.contains("\"unknown_key\""), "{after}");
}

#[tokio::test]
async fn a_disabled_user_cannot_sign_in_through_the_provider() {
    // Disabled after a sign-in: the session ends, the next sign-in is refused, recorded and explained.
    let flow = ProviderSignIn::start().await;
    let session = flow.sign_in().await;
    let id = flow.me(&session).await["id"].as_str().unwrap().to_owned();
    let identity = flow.console.serving.identity();
    identity
        .disable_user(&Principal::system("test"), &id)
        .await
        .unwrap();
    let answer = flow.come_back(&flow.go("/sign-in/oidc").await).await;
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    assert!(cookies(&answer).iter().all(|cookie| !cookie.contains("lhs_")));
    assert!(
        answer
            .text()
            .await
            .unwrap()
            .contains("Your user is disabled here")
    );
    let row = &flow.console.audit_entries().await[0];
    assert_eq!((row.action.as_str(), row.outcome.as_str()), ("LOGIN", "refused"));
    assert!(row.after.as_ref().unwrap().contains("disabled"));
}

#[tokio::test]
async fn provider_users_have_no_password() {
    // A password or a link, of their own or by another admin, would let them sign in after the provider has removed them.
    let flow = ProviderSignIn::start().await;
    flow.provider.visit(Visitor {
        groups: vec!["lock-admins"],
        ..flow.provider.visitor()
    });
    let session = flow.sign_in().await;
    let own = TestCaller::Session(session.split_once('=').unwrap().1.to_owned());
    flow.console.add_user("root", on(Role::Admin, None, None)).await;
    let root = flow.console.sign_in("root").await;
    let path = format!("/v1/users/{}", flow.console.user_id("ada"));
    for caller in [&own, &root] {
        let caller = flow.console.as_user(caller);
        let body = json!({"password": PASSWORD});
        let (status, problem) = caller.json(Method::PUT, &format!("{path}/password"), &body).await;
        assert_eq!(
            (status, &problem["field"]),
            (400, &json!("password")),
            "{problem}"
        );
        let (status, problem) = caller.post(&format!("{path}/link"), &json!({})).await;
        assert_eq!((status, &problem["field"]), (400, &json!("user")), "{problem}");
    }
    // One that an earlier version stored does not count.
    let stored = "UPDATE users SET password_hash = (SELECT password_hash FROM users WHERE name = 'root')
        WHERE name = 'ada'";
    flow.console.store.sql(stored).await;
    let form = flow
        .http
        .post(flow.url("/settings/password"))
        .form(&[("password", PASSWORD)]);
    let answer = form.header(header::COOKIE, session).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let form = [("name", "ada"), ("password", PASSWORD)];
    let guess = flow
        .http
        .post(flow.url("/sign-in"))
        .form(&form)
        .send()
        .await
        .unwrap();
    assert_eq!(guess.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_user_without_a_role_is_refused_and_loses_grants() {
    // A user in no group with a role: sign-in opens no session, and the open session has no permissions any more.
    let flow = ProviderSignIn::start().await;
    let session = flow.sign_in().await;
    flow.provider.visit(Visitor {
        groups: vec!["gardeners"],
        ..flow.provider.visitor()
    });
    let answer = flow.come_back(&flow.go("/sign-in/oidc").await).await;
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    assert!(answer.text().await.unwrap().contains("has no role here"));
    let page = flow
        .http
        .get(flow.url("/v1/backends"))
        .header(header::COOKIE, session);
    assert_eq!(page.send().await.unwrap().status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn an_unreachable_provider_is_reported_and_passwords_work() {
    // It stops before the first request.
    let mut flow = ProviderSignIn::start().await;
    flow.console.add_user("root", on(Role::Admin, None, None)).await;
    drop(flow.away.take());
    testkit::eventually("the provider is away", || async {
        flow.http.get(flow.provider.issuer()).send().await.is_err()
    })
    .await;
    let answer = flow.http.get(flow.url("/sign-in/oidc")).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    let page = answer.text().await.unwrap();
    assert!(
        page.contains("Example ID cannot be reached") && page.contains("name=\"password\""),
        "{page}"
    );
    let form = [("name", "root"), ("password", PASSWORD)];
    let welcome = flow
        .http
        .post(flow.url("/sign-in"))
        .form(&form)
        .send()
        .await
        .unwrap();
    assert_eq!(welcome.status(), StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn only_a_recent_sign_in_counts_as_fresh() {
    // By the provider's auth_time: an hour ago, missing, and after a new login that we requested.
    let flow = ProviderSignIn::start().await;
    let identity = flow.console.serving.identity();
    let is_fresh = async |cookie: &str| {
        let secret = cookie.split_once('=').unwrap().1;
        let session = identity.session(secret, true).await.unwrap().unwrap();
        identity.is_fresh(&session)
    };
    assert!(is_fresh(&flow.sign_in().await).await);
    flow.provider.visit(Visitor {
        proved_s_ago: Some(3_600),
        ..flow.provider.visitor()
    });
    assert!(!is_fresh(&flow.sign_in().await).await);
    let again = flow.come_back(&flow.go("/sign-in/oidc?again=1").await).await;
    assert!(is_fresh(&cookies(&again)[0]).await);
    flow.provider.visit(Visitor {
        proved_s_ago: None,
        ..flow.provider.visitor()
    });
    assert!(!is_fresh(&flow.sign_in().await).await);
    let unsaid = flow.come_back(&flow.go("/sign-in/oidc?again=1").await).await;
    assert_eq!(unsaid.status(), StatusCode::BAD_REQUEST);
}

/// The principal of one of the console's users.
fn user(flow: &ProviderSignIn, name: &str) -> Principal {
    let directory = flow.console.serving.identity().directory();
    let user = directory.user_named(name).unwrap();
    let session = Session {
        id: "s_test".to_owned(),
        user_id: user.id.clone(),
        authenticated_at: flow.console.serving.clock.now().wall.timestamp_millis(),
        link_created_by_id: None,
        root_user_id: None,
    };
    Principal {
        session: Some(Arc::new(session)),
        subject: Subject::User {
            id: user.id.as_str().into(),
            name: user.name.as_str().into(),
        },
        grants: Arc::clone(&user.grants),
        ..Principal::system("test")
    }
}

#[tokio::test]
async fn two_sign_in_methods_do_not_make_a_second_approver() {
    // Ada with a password begins to unlock a protected lock; the provider's Ada may not approve it, another user of
    // the provider may.
    let flow = ProviderSignIn::start().await;
    flow.console.add_user("ada", on(Role::Admin, None, None)).await;
    let (unlocks, builtin) = (&flow.console.serving.unlocks, BackendName::builtin());
    for (subject, name) in [("s-1", "Ada@example.com"), ("s-2", "grace")] {
        let groups = vec!["lock-admins"];
        flow.provider.visit(Visitor {
            subject,
            name,
            groups,
            proved_s_ago: Some(1),
        });
        flow.sign_in().await;
    }
    unlocks
        .set_protected_prefix(&Principal::system("test"), None, "r", ProtectionLevel::Protected)
        .await
        .unwrap();
    let client = token(&flow.console.serving, Role::Client).await;
    let taken = flow
        .http
        .post(flow.url("/v1/locks/acquire"))
        .bearer_auth(client.expose())
        .json(&json!({"resource": "r", "ownerId": "worker-1", "ttlSeconds": 600}));
    assert_eq!(taken.send().await.unwrap().status(), StatusCode::OK);
    let (ada, begun) = (user(&flow, "ada"), std::cell::RefCell::new(String::new()));
    eventually("an intent", async || {
        let Ok(seen) = unlocks.preview(&ada, &builtin, None, "r").await else {
            return false;
        };
        let request = UnlockRequest {
            backend: builtin.clone(),
            source: None,
            resource: "r".to_owned(),
            generation: seen.observed.unwrap().generation,
            reason: "its holder is gone for good".to_owned(),
        };
        *begun.borrow_mut() = unlocks.begin(&ada, request).await.unwrap().id;
        true
    })
    .await;
    let id = begun.into_inner();
    let own = unlocks
        .approve(&user(&flow, "Ada@example.com"), &id)
        .await
        .unwrap_err();
    assert_eq!(own.code(), "forbidden", "{own}");
    assert!(
        unlocks
            .approve(&user(&flow, "grace"), &id)
            .await
            .unwrap()
            .approval
            .is_some()
    );
}

#[tokio::test]
async fn sign_in_starts_are_limited_per_address() {
    // Would catch a row for each of a thousand requests, and an office shut out by a neighbour.
    let flow = ProviderSignIn::start().await;
    let mut begun = 0;
    let refused = loop {
        let answer = flow.http.get(flow.url("/sign-in/oidc")).send().await.unwrap();
        if answer.status() != StatusCode::SEE_OTHER {
            break answer;
        }
        begun += 1;
        assert!(begun < 200, "no sign-in is throttled");
    };
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.headers().contains_key(header::RETRY_AFTER));
    assert!(begun >= 60, "{begun}");
    let elsewhere = Client::builder()
        .redirect(redirect::Policy::none())
        .local_address(IpAddr::from([127, 0, 0, 2]))
        .build()
        .unwrap();
    let answer = elsewhere.get(flow.url("/sign-in/oidc")).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
}
