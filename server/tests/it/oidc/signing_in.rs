//! Who signs in through the provider, what they may do then, and what happens when it does not know them or is away.

use std::net::IpAddr;
use std::sync::Arc;

use domain::access::Role;
use domain::names::BackendName;
use domain::unlock::Tier;
use leasehold::identity::{Session, Subject, Who};
use leasehold::unlock::Asked;
use reqwest::{Client, StatusCode, header, redirect};
use serde_json::json;

use super::provider::{Lie, Visitor};
use super::stage::{Stage, cookies, location};
use crate::doors::stage::PASSWORD;
use crate::support::console::token;
use crate::support::eventually::eventually;
use crate::support::form::Form as _;

#[tokio::test]
async fn somebody_known_to_the_provider_signs_in_and_may_do_what_the_claim_says() {
    // By the button, back to where they were going; then with another group, whose rights count from then on.
    let stage = Stage::start().await;
    let page = stage
        .http
        .get(stage.url("/sign-in?next=%2Flocks"))
        .send()
        .await
        .unwrap();
    let page = page.text().await.unwrap();
    assert!(
        page.contains("Sign in with ") && page.contains("Example ID"),
        "{page}"
    );
    assert!(page.contains("href=\"/sign-in/oidc?next=%2Flocks\""), "{page}");
    let back = stage.go("/sign-in/oidc?next=%2Flocks").await;
    let answer = stage.come_back(&back).await;
    assert_eq!(
        (answer.status(), location(&answer).as_str()),
        (StatusCode::SEE_OTHER, "/locks")
    );
    let set = cookies(&answer);
    assert!(
        set[0].starts_with("leasehold=lhs_") && set[1] == "leasehold-oidc=",
        "{set:?}"
    );
    let me = stage.me(&set[0]).await;
    assert_eq!(me["name"], "ada", "{me}");
    assert_eq!(
        me["grants"],
        json!([{"role": "operator", "backend": null, "prefix": "team_1:"}])
    );
    let rows = stage.console.record().await;
    let told: Vec<_> = rows
        .iter()
        .map(|row| (row.action.as_str(), row.actor_name.as_str()))
        .collect();
    assert_eq!(told, [("LOGIN", "ada"), ("PERSON_CREATE", "ada")]);
    assert!(rows[0].after.as_ref().unwrap().contains("\"oidc\""));

    stage.provider.visit(Visitor {
        groups: vec!["lock-admins", "others"],
        ..stage.provider.visitor()
    });
    let session = stage.sign_in().await;
    let grants = json!([{"role": "admin", "backend": null, "prefix": null}]);
    assert_eq!(stage.me(&session).await["grants"], grants);
    let rows = stage.console.record().await;
    assert_eq!(
        (rows[1].action.as_str(), rows[1].outcome.as_str()),
        ("PERSON_CHANGE", "ok")
    );
    let people = stage.console.serving.identity.directory().people.len();
    assert_eq!(people, 1);
}

#[tokio::test]
async fn a_subject_is_a_person_whatever_their_name_or_address() {
    // The same subject under another name stays who they were; another subject who calls itself like an admin of ours is
    // somebody else, with another name and nothing of the admin's.
    let stage = Stage::start().await;
    stage.console.admin("root").await;
    let first = stage.me(&stage.sign_in().await).await;
    stage.provider.visit(Visitor {
        name: "ada.lovelace",
        ..stage.provider.visitor()
    });
    let renamed = stage.me(&stage.sign_in().await).await;
    assert_eq!((&first["id"], &first["name"]), (&renamed["id"], &renamed["name"]));
    stage.provider.visit(Visitor {
        subject: "s-2",
        name: "root",
        ..stage.provider.visitor()
    });
    let other = stage.me(&stage.sign_in().await).await;
    assert_eq!(other["name"], "root+2");
    assert_ne!(other["id"], first["id"]);
    assert_eq!(other["grants"], first["grants"]);
}

#[tokio::test]
async fn a_provider_that_changes_its_keys_is_believed_at_once_and_the_old_ones_no_more() {
    // A sign-in by the first key, the next one by the second, and then somebody who still has the first.
    let stage = Stage::start().await;
    stage.sign_in().await;
    stage.provider.rotate();
    stage.sign_in().await;
    stage.provider.lie(Lie::FirstKey);
    let back = stage.go("/sign-in/oidc").await;
    let answer = stage.come_back(&back).await;
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
    let rows = stage.console.record().await;
    let after = rows[0].after.as_ref().unwrap();
    assert!(after.contains("\"unknown_key\""), "{after}");
}

#[tokio::test]
async fn somebody_disabled_here_stays_out_whatever_the_provider_says() {
    // Disabled after a sign-in: the session ends, the next sign-in is refused, recorded and explained.
    let stage = Stage::start().await;
    let session = stage.sign_in().await;
    let id = stage.me(&session).await["id"].as_str().unwrap().to_owned();
    let identity = &stage.console.serving.identity;
    identity.disable_person(&Who::system("test"), &id).await.unwrap();
    let answer = stage.come_back(&stage.go("/sign-in/oidc").await).await;
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    assert!(cookies(&answer).iter().all(|cookie| !cookie.contains("lhs_")));
    assert!(answer.text().await.unwrap().contains("You were disabled here"));
    let row = &stage.console.record().await[0];
    assert_eq!((row.action.as_str(), row.outcome.as_str()), ("LOGIN", "refused"));
    assert!(row.after.as_ref().unwrap().contains("disabled"));
}

#[tokio::test]
async fn a_password_of_their_own_is_not_for_whoever_comes_from_the_provider() {
    // With it they could come in when the provider does not know them any more.
    let stage = Stage::start().await;
    let session = stage.sign_in().await;
    let form = stage
        .http
        .post(stage.url("/settings/password"))
        .form(&[("password", PASSWORD)]);
    let answer = form.header(header::COOKIE, session).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let form = [("name", "ada"), ("password", PASSWORD)];
    let guess = stage
        .http
        .post(stage.url("/sign-in"))
        .form(&form)
        .send()
        .await
        .unwrap();
    assert_eq!(guess.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn who_has_no_role_is_told_so_and_loses_what_they_had() {
    // Out of every group that brings one: no session, and the rights of the open one are gone.
    let stage = Stage::start().await;
    let session = stage.sign_in().await;
    stage.provider.visit(Visitor {
        groups: vec!["gardeners"],
        ..stage.provider.visitor()
    });
    let answer = stage.come_back(&stage.go("/sign-in/oidc").await).await;
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    assert!(answer.text().await.unwrap().contains("gives you no role here"));
    let page = stage
        .http
        .get(stage.url("/v1/backends"))
        .header(header::COOKIE, session);
    assert_eq!(page.send().await.unwrap().status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_provider_that_is_away_is_said_so_and_passwords_still_work() {
    // It stops before anybody asked it.
    let mut stage = Stage::start().await;
    stage.console.admin("root").await;
    drop(stage.away.take());
    crate::support::eventually::eventually("the provider is away", || async {
        stage.http.get(stage.provider.issuer()).send().await.is_err()
    })
    .await;
    let answer = stage.http.get(stage.url("/sign-in/oidc")).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    let page = answer.text().await.unwrap();
    assert!(
        page.contains("Example ID cannot be reached") && page.contains("name=\"password\""),
        "{page}"
    );
    let form = [("name", "root"), ("password", PASSWORD)];
    let welcome = stage
        .http
        .post(stage.url("/sign-in"))
        .form(&form)
        .send()
        .await
        .unwrap();
    assert_eq!(welcome.status(), StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn only_who_proved_it_just_now_counts_as_fresh() {
    // By the provider's word: hours ago, never said, and asked anew by us.
    let stage = Stage::start().await;
    let identity = &stage.console.serving.identity;
    let is_fresh = async |cookie: &str| {
        let secret = cookie.split_once('=').unwrap().1;
        let session = identity.session(secret).await.unwrap().unwrap();
        identity.is_fresh(&session)
    };
    assert!(is_fresh(&stage.sign_in().await).await);
    stage.provider.visit(Visitor {
        proved_s_ago: Some(3_600),
        ..stage.provider.visitor()
    });
    assert!(!is_fresh(&stage.sign_in().await).await);
    let again = stage.come_back(&stage.go("/sign-in/oidc?again=1").await).await;
    assert!(is_fresh(&cookies(&again)[0]).await);
    stage.provider.visit(Visitor {
        proved_s_ago: None,
        ..stage.provider.visitor()
    });
    assert!(!is_fresh(&stage.sign_in().await).await);
    let unsaid = stage.come_back(&stage.go("/sign-in/oidc?again=1").await).await;
    assert_eq!(unsaid.status(), StatusCode::BAD_REQUEST);
}

/// One of the people that the console knows, as they would ask.
fn person(stage: &Stage, name: &str) -> Who {
    let directory = stage.console.serving.identity.directory();
    let person = directory.person_named(name).unwrap();
    let session = Session {
        id: "s_test".to_owned(),
        person_id: person.id.clone(),
        authenticated_at: stage.console.serving.clock.now().wall.timestamp_millis(),
        link_by_id: None,
        root_id: None,
    };
    Who {
        session: Some(Arc::new(session)),
        subject: Subject::Person {
            id: person.id.as_str().into(),
            name: person.name.as_str().into(),
        },
        grants: Arc::clone(&person.grants),
        ..Who::system("test")
    }
}

#[tokio::test]
async fn somebody_with_two_ways_in_is_not_their_own_second_person() {
    // Ada with a password begins to unlock a protected lock; the provider's Ada may not approve it, somebody else of the
    // provider's may.
    let stage = Stage::start().await;
    stage.console.admin("ada").await;
    let (unlocks, builtin) = (&stage.console.serving.unlocks, BackendName::builtin());
    for (subject, name) in [("s-1", "Ada@example.com"), ("s-2", "grace")] {
        let groups = vec!["lock-admins"];
        stage.provider.visit(Visitor {
            subject,
            name,
            groups,
            proved_s_ago: Some(1),
        });
        stage.sign_in().await;
    }
    unlocks
        .set_tier(&Who::system("test"), None, "r", Tier::Protected)
        .await
        .unwrap();
    let client = token(&stage.console.serving, Role::Client).await;
    let taken = stage
        .http
        .post(stage.url("/v1/locks/acquire"))
        .bearer_auth(client.expose())
        .json(&json!({"resource": "r", "ownerId": "worker-1", "ttlSeconds": 600}));
    assert_eq!(taken.send().await.unwrap().status(), StatusCode::OK);
    let (ada, begun) = (person(&stage, "ada"), std::cell::RefCell::new(String::new()));
    eventually("an intent", async || {
        let Ok(seen) = unlocks.preview(&ada, &builtin, None, "r").await else {
            return false;
        };
        let asked = Asked {
            backend: builtin.clone(),
            source: None,
            resource: "r".to_owned(),
            generation: seen.observed.unwrap().generation,
            reason: "its holder is gone for good".to_owned(),
        };
        *begun.borrow_mut() = unlocks.begin(&ada, asked).await.unwrap().id;
        true
    })
    .await;
    let id = begun.into_inner();
    let own = unlocks
        .approve(&person(&stage, "Ada@example.com"), &id)
        .await
        .unwrap_err();
    assert_eq!(own.code(), "forbidden", "{own}");
    assert!(
        unlocks
            .approve(&person(&stage, "grace"), &id)
            .await
            .unwrap()
            .approval
            .is_some()
    );
}

#[tokio::test]
async fn one_address_that_begins_again_and_again_must_wait_and_another_need_not() {
    // Would catch a row for each of a thousand requests, and an office shut out by a neighbour.
    let stage = Stage::start().await;
    let mut begun = 0;
    let refused = loop {
        let answer = stage.http.get(stage.url("/sign-in/oidc")).send().await.unwrap();
        if answer.status() != StatusCode::SEE_OTHER {
            break answer;
        }
        begun += 1;
        assert!(begun < 200, "nobody is ever stopped");
    };
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.headers().contains_key(header::RETRY_AFTER));
    assert!(begun >= 60, "{begun}");
    let elsewhere = Client::builder()
        .redirect(redirect::Policy::none())
        .local_address(IpAddr::from([127, 0, 0, 2]))
        .build()
        .unwrap();
    let answer = elsewhere.get(stage.url("/sign-in/oidc")).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
}
