//! An admin, or a stolen admin token, grants permissions, a password or a link, enables an
//! account, takes over leases, removes a protection or switches read-only, without attention, or first redirects or removes a
//! receiver. Every receiver is notified, in the transaction of the change.

use crate::support::{TestServer, on};
use domain::access::{Grant, Role};
use domain::unlock::ProtectionLevel;
use leasehold::identity::{NewToken, NewUser, Principal};
use leasehold::notify::{NewReceiver, ReceiverKind};
use secrecy::SecretString;

use crate::support::webhook_sink::WebhookSink;

async fn stage_with_receiver() -> (TestServer, WebhookSink) {
    let server = TestServer::builder()
        .config("[notify]\nallowed_networks = [\"127.0.0.1/32\"]\n")
        .start()
        .await;
    let sink = WebhookSink::open().await;
    add_receiver(&server, "security", &sink).await;
    (server, sink)
}

async fn add_receiver(server: &TestServer, name: &str, sink: &WebhookSink) {
    let new = NewReceiver {
        name: name.to_owned(),
        kind: ReceiverKind::Webhook,
        urls: vec![sink.url.as_str().into()],
        secret: Some("a secret of thirty-two characters".into()),
    };
    let notifier = &server.serving.notifier;
    notifier.add(&Principal::system("test"), new).await.unwrap();
}

/// What receivers were sent: the change and its summary, by summary.
async fn sent(sink: &WebhookSink, count: usize) -> Vec<(String, String)> {
    let received = sink.wait_for(count).await;
    let mut sent: Vec<(String, String)> = received
        .iter()
        .map(|received| {
            let body = received.json();
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
    let (server, sink) = stage_with_receiver().await;
    let (identity, eve) = (server.identity(), Principal::system("eve"));
    let new = |name: &str, role| NewUser {
        name: name.to_owned(),
        grants: vec![Grant::everywhere(role)],
        password: None,
    };
    // Not a privileged role: nothing is sent.
    let bob = identity.add_user(&eve, new("bob", Role::Operator)).await.unwrap();
    identity
        .add_user(&eve, new("mallory", Role::Admin))
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
    identity.user_link(&eve, &bob).await.unwrap();
    let expected = [
        ("link_created", "eve created a sign-in link for bob"),
        ("password_set", "eve set the password of bob"),
        ("role_granted", "eve granted admin to the token automation"),
        ("role_granted", "eve granted admin to the user mallory"),
        ("role_granted", "eve granted approver to the user bob"),
    ];
    assert_eq!(sent(&sink, 5).await, pairs(&expected));
}

#[tokio::test]
async fn receivers_are_sent_the_roles_of_an_enabled_user() {
    // A user without a privileged role is enabled first: nothing is sent.
    let (server, sink) = stage_with_receiver().await;
    let (identity, eve) = (server.identity(), Principal::system("eve"));
    for (name, role) in [("bob", Role::Operator), ("carol", Role::Approver)] {
        let user = server.add_user(name, on(role, None, None)).await;
        identity.disable_user(&eve, &user).await.unwrap();
        identity.enable_user(&eve, &user).await.unwrap();
    }
    let expected = [
        ("role_granted", "eve granted approver to the user carol"),
        ("role_granted", "test granted approver to the user carol"),
    ];
    assert_eq!(sent(&sink, 2).await, pairs(&expected));
}

#[tokio::test]
async fn receivers_are_sent_a_token_that_inherits_leases() {
    // Without a message of its own for the first token, whose role is not privileged.
    let (server, sink) = stage_with_receiver().await;
    let (identity, eve) = (server.identity(), Principal::system("eve"));
    let new = |name: &str, role| NewToken {
        name: name.to_owned(),
        grants: on(role, None, None),
        expires_in: None,
    };
    identity
        .create_token(&eve, new("billing", Role::Client))
        .await
        .unwrap();
    // Named by its id, which says nothing to a reader of the message.
    let tokens = identity.tokens().await.unwrap();
    let billing = tokens.iter().find(|token| token.name == "billing").unwrap();
    // A new privileged role does not hide the leases.
    for (name, role) in [("mine", Role::Client), ("more", Role::Admin)] {
        let created = identity
            .create_successor(&eve, new(name, role), &billing.id)
            .await;
        created.unwrap();
    }
    let expected = [
        (
            "leases_inherited",
            "eve created the token mine, which inherits the leases of billing",
        ),
        (
            "role_granted",
            "eve granted admin to the token more, which inherits the leases of billing",
        ),
    ];
    assert_eq!(sent(&sink, 2).await, pairs(&expected));
}

#[tokio::test]
async fn receivers_are_sent_the_end_of_a_protection() {
    let (server, sink) = stage_with_receiver().await;
    let (unlocks, eve) = (&server.serving.unlocks, Principal::system("eve"));
    let set = async |prefix: &str, protection| {
        unlocks
            .set_protected_prefix(&eve, None, prefix, protection)
            .await
            .unwrap()
    };
    set("jobs", ProtectionLevel::Protected).await;
    set("reports", ProtectionLevel::Standard).await;
    set("jobs/billing", ProtectionLevel::Standard).await;
    let rules = unlocks.protected_prefixes().await.unwrap();
    let jobs = rules.iter().find(|rule| rule.prefix == "jobs").unwrap();
    unlocks.remove_protected_prefix(&eve, &jobs.id).await.unwrap();
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
    assert_eq!(sent(&sink, 2).await, pairs(&expected));
}

#[tokio::test]
async fn receivers_are_sent_both_changes_of_the_read_only_switch() {
    // The same state again is no change, neither in messages nor in the audit log.
    let (server, sink) = stage_with_receiver().await;
    let (identity, eve) = (server.identity(), Principal::system("eve"));
    for read_only in [false, true, true, false, false] {
        identity.set_read_only(&eve, read_only).await.unwrap();
    }
    let expected = [
        (
            "read_only_cleared",
            "eve ended read-only: locks can be released by force again",
        ),
        (
            "read_only_set",
            "eve made the console read-only: no lock can be released by force",
        ),
    ];
    assert_eq!(sent(&sink, 2).await, pairs(&expected));
    let entries = server.audit_entries().await;
    let changes = entries.iter().filter(|entry| entry.action == "READ_ONLY_CHANGE");
    assert_eq!(changes.count(), 2);
}

#[tokio::test]
async fn a_change_without_notification_is_rolled_back() {
    let (server, _ear) = stage_with_receiver().await;
    let fault = "CREATE TRIGGER refuse BEFORE INSERT ON notifications BEGIN SELECT RAISE(ABORT, 'full'); END";
    server.store.sql(fault).await;
    let new = NewUser {
        name: "mallory".to_owned(),
        grants: vec![Grant::everywhere(Role::Admin)],
        password: None,
    };
    let refused = server.identity().add_user(&Principal::system("eve"), new).await;
    assert!(refused.is_err(), "{refused:?}");
    assert!(server.identity().directory().user_named("mallory").is_none());
}

#[tokio::test]
async fn receivers_are_sent_changes_of_a_receiver() {
    // Another address and secret, the same again, and a removal.
    let (server, sink) = stage_with_receiver().await;
    let (old, new) = (WebhookSink::open().await, WebhookSink::open().await);
    add_receiver(&server, "ops", &old).await;
    let (notifier, eve) = (&server.serving.notifier, Principal::system("eve"));
    let urls: [SecretString; 1] = [new.url.as_str().into()];
    let secret: SecretString = "another secret of the new address".into();
    let changed = notifier.change(&eve, "ops", &urls, Some(secret));
    Box::pin(changed).await.unwrap();
    let change = [("receiver_changed", "eve changed the receiver ops")];
    assert_eq!(sent(&new, 1).await, pairs(&change));
    Box::pin(notifier.change(&eve, "ops", &urls, None)).await.unwrap();
    Box::pin(notifier.remove(&eve, "ops")).await.unwrap();
    let expected = [change[0], ("receiver_removed", "eve removed the receiver ops")];
    assert_eq!(sent(&sink, 2).await, pairs(&expected));
}

#[tokio::test]
async fn a_change_of_a_receiver_without_notification_is_rolled_back() {
    let (server, _sink) = stage_with_receiver().await;
    let (old, new) = (WebhookSink::open().await, WebhookSink::open().await);
    add_receiver(&server, "ops", &old).await;
    let fault = "CREATE TRIGGER refuse BEFORE INSERT ON notifications BEGIN SELECT RAISE(ABORT, 'full'); END";
    server.store.sql(fault).await;
    let (notifier, eve) = (&server.serving.notifier, Principal::system("eve"));
    let urls: [SecretString; 1] = [new.url.as_str().into()];
    let secret: SecretString = "another secret of the new address".into();
    let refused = Box::pin(notifier.change(&eve, "ops", &urls, Some(secret))).await;
    assert!(refused.is_err(), "{refused:?}");
    let refused = Box::pin(notifier.remove(&eve, "ops")).await;
    assert!(refused.is_err(), "{refused:?}");
    let receivers = notifier.receivers().await.unwrap();
    let ops = receivers.iter().find(|view| view.name == "ops").unwrap();
    assert_eq!(ops.urls, [format!("{}/", old.url)]);
}
