//! An admin, or a stolen token of one, gives somebody rights, a password or a link, or takes a protection away, and hopes that
//! nobody looks at the audit log. Every receiver is sent it, in the transaction of the change.

use domain::access::{Grant, Role};
use domain::unlock::Tier;
use leasehold::identity::{NewPerson, NewToken, Who};
use leasehold::notify::{Kind, NewReceiver};

use crate::support::ear::Ear;
use crate::unlock::stage::{Home, Stage, on};

async fn stage_with_receiver() -> (Stage, Ear) {
    let stage = Stage::on(Home::sqlite(), "[notify]\nallow = [\"127.0.0.1/32\"]\n").await;
    let ear = Ear::open().await;
    let new = NewReceiver {
        name: "security".to_owned(),
        kind: Kind::Webhook,
        urls: vec![ear.url.as_str().into()],
        secret: Some("a secret of thirty-two characters".into()),
    };
    let notifier = &stage.serving.notifier;
    notifier.add(&Who::system("test"), new).await.unwrap();
    (stage, ear)
}

/// What receivers were sent: the change and its summary, by summary.
async fn sent(ear: &Ear, count: usize) -> Vec<(String, String)> {
    let heard = ear.hears(count).await;
    let mut sent: Vec<(String, String)> = heard
        .iter()
        .map(|heard| {
            let body = heard.json();
            let alert = &body["alerts"][0];
            assert_eq!(alert["labels"]["alertname"], "AccessChange", "{body}");
            let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
            (
                text(&alert["labels"]["change"]),
                text(&alert["annotations"]["summary"]),
            )
        })
        .collect();
    sent.sort();
    sent
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(change, summary): &(&str, &str)| ((*change).to_owned(), (*summary).to_owned());
    expected.iter().map(owned).collect()
}

#[tokio::test]
async fn receivers_are_sent_privileged_roles_passwords_and_links() {
    let (stage, ear) = stage_with_receiver().await;
    let (identity, eve) = (stage.identity(), Who::system("eve"));
    let new = |name: &str, role| NewPerson {
        name: name.to_owned(),
        grants: vec![Grant::everywhere(role)],
        password: None,
    };
    // Not a privileged role: nothing is sent.
    let bob = identity
        .add_person(&eve, new("bob", Role::Operator))
        .await
        .unwrap();
    identity
        .add_person(&eve, new("mallory", Role::Admin))
        .await
        .unwrap();
    let both = [on(Role::Operator, None, None), on(Role::Approver, None, None)].concat();
    identity.set_grants(&eve, &bob, both.clone()).await.unwrap();
    // The same again is no news.
    identity.set_grants(&eve, &bob, both).await.unwrap();
    let token = NewToken {
        name: "automation".to_owned(),
        grants: on(Role::Admin, None, None),
        expires_in: None,
    };
    identity.create_token(&eve, token).await.unwrap();
    let password = "correct horse battery".into();
    identity.set_password(&eve, &bob, &password).await.unwrap();
    identity.person_link(&eve, &bob).await.unwrap();
    let expected = [
        ("link_created", "eve created a sign-in link for bob"),
        ("password_set", "eve set the password of bob"),
        ("role_granted", "eve granted admin to the token automation"),
        ("role_granted", "eve granted admin to the user mallory"),
        ("role_granted", "eve granted approver to the user bob"),
    ];
    assert_eq!(sent(&ear, 5).await, pairs(&expected));
}

#[tokio::test]
async fn receivers_are_sent_the_end_of_a_protection() {
    let (stage, ear) = stage_with_receiver().await;
    let (unlocks, eve) = (&stage.serving.unlocks, Who::system("eve"));
    let set = async |prefix: &str, tier| unlocks.set_tier(&eve, None, prefix, tier).await.unwrap();
    set("jobs", Tier::Protected).await;
    set("reports", Tier::Standard).await;
    set("jobs/billing", Tier::Standard).await;
    let rules = unlocks.tiers().await.unwrap();
    let jobs = rules.iter().find(|rule| rule.prefix == "jobs").unwrap();
    unlocks.remove_tier(&eve, &jobs.id).await.unwrap();
    let expected = [
        (
            "protection_removed",
            "eve removed the protection of the names below jobs on every backend",
        ),
        (
            "protection_removed",
            "eve removed the protection of the names below jobs/billing on every backend",
        ),
    ];
    assert_eq!(sent(&ear, 2).await, pairs(&expected));
}

#[tokio::test]
async fn a_change_that_cannot_be_sent_is_not_made() {
    let (stage, _ear) = stage_with_receiver().await;
    let fault = "CREATE TRIGGER refuse BEFORE INSERT ON notices BEGIN SELECT RAISE(ABORT, 'full'); END";
    stage.home.sql(fault).await;
    let new = NewPerson {
        name: "mallory".to_owned(),
        grants: vec![Grant::everywhere(Role::Admin)],
        password: None,
    };
    let refused = stage.identity().add_person(&Who::system("eve"), new).await;
    assert!(refused.is_err(), "{refused:?}");
    assert!(stage.identity().directory().person_named("mallory").is_none());
}
