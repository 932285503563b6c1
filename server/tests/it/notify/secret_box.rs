//! Encrypted secrets of receivers: decrypted by the right key alone, and never lost by a wrong key.

use std::os::unix::fs::PermissionsExt as _;

use ::config::NotifyConfig;
use leasehold::identity::Principal;
use leasehold::notify::{DeliveryState, NotifyError, ReceiverKind};
use runtime::db::Db;
use sqlx::Row as _;

use super::notifier::{SECRET, Store, TestNotifier, config, firing};
use crate::support::webhook_sink::WebhookSink;
use testkit::eventually;

const OLD: &str = "11e2b6a0c4d8f3957a6b1c2d3e4f5061728394a5b6c7d8e9f00112233445566a";
const NEW: &str = "99e2b6a0c4d8f3957a6b1c2d3e4f5061728394a5b6c7d8e9f00112233445566b";

fn with_key(key: &str, before: Option<&str>) -> NotifyConfig {
    NotifyConfig {
        secret_key: Some(key.into()),
        previous_secret_key: before.map(Into::into),
        ..config()
    }
}

/// All text columns of all receivers as stored.
async fn stored(db: &Db) -> String {
    let select = "SELECT name, urls, coalesce(secret, '') FROM receivers ORDER BY name";
    let read = |one: sqlx::Result<(String, String, String)>| {
        let (name, urls, secret) = one.unwrap();
        format!("{name} {urls} {secret}\n")
    };
    match db {
        Db::Sqlite(pool) => {
            let rows = sqlx::query(select).fetch_all(pool).await.unwrap();
            let rows = rows
                .iter()
                .map(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)));
            rows.map(read).collect()
        }
        Db::Postgres(pool) => {
            let rows = sqlx::query(select).fetch_all(pool).await.unwrap();
            let rows = rows
                .iter()
                .map(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)));
            rows.map(read).collect()
        }
    }
}

fn is_sealed(text: &str, sink: &WebhookSink) {
    assert!(!text.contains(SECRET) && !text.contains(&sink.url), "{text}");
    assert_eq!(text.matches("leasehold-sealed:1:").count(), 2, "{text}");
}

async fn says(notifier: &TestNotifier, sink: &WebhookSink, resource: &str) {
    let before = sink.received().len();
    notifier.enqueue_notice(&firing(resource)).await;
    sink.wait_for(before + 1).await;
}

#[tokio::test]
async fn plain_secrets_are_encrypted_at_the_next_start() {
    // Would catch secrets of an older version left in clear, sealed for good, or a key that others may read.
    let sink = WebhookSink::open().await;
    let notifier = TestNotifier::start().await;
    notifier.add("hook", ReceiverKind::Webhook, &[&sink.url]).await;
    is_sealed(&stored(&notifier.db).await, &sink);
    // As a version that did not seal wrote them.
    let clear = format!(
        "UPDATE receivers SET urls = '[\"{}\"]', secret = '{SECRET}'",
        sink.url
    );
    notifier.sql(&clear).await;
    let file = notifier.store.folder().join("leasehold.secret_key");
    let key = std::fs::read_to_string(&file).unwrap();
    let notifier = notifier.again().await;
    is_sealed(&stored(&notifier.db).await, &sink);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), key);
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    says(&notifier, &sink, "a").await;
    assert!(sink.received()[0].header("x-signature").starts_with("sha256="));
}

#[tokio::test]
async fn a_wrong_key_loses_no_secret_and_has_a_remedy() {
    // Would catch a message that is dropped, a secret that is overwritten, or a new key in the place of the missing one.
    let sink = WebhookSink::open().await;
    let test_notifier = TestNotifier::start().await;
    test_notifier
        .add("hook", ReceiverKind::Webhook, &[&sink.url])
        .await;
    let sealed = stored(&test_notifier.db).await;
    let file = test_notifier.store.folder().join("leasehold.secret_key");
    let (store, _) = test_notifier.stopped().await;
    let kept = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    for config in [config(), with_key(NEW, None)] {
        let has_key = config.secret_key.is_some();
        let test_notifier = TestNotifier::on(store.shared(), config).await;
        assert_eq!(stored(&test_notifier.db).await, sealed);
        assert!(!file.exists(), "a second key lies where the first is put back");
        let view = &test_notifier.notifier.receivers().await.unwrap()[0];
        let why = view.fault().unwrap();
        assert!(why.contains("previous_secret_key") && view.has_secret, "{why}");
        let tried = test_notifier
            .notifier
            .try_out(&Principal::system("test"), "hook")
            .await;
        assert!(matches!(tried, Err(NotifyError::Locked { .. })), "{tried:?}");
        // A partial re-encryption would lose the other part.
        let urls = [sink.url.as_str().into()];
        let half = test_notifier
            .notifier
            .change(&Principal::system("test"), "hook", &urls, None)
            .await;
        assert!(
            matches!(half, Err(NotifyError::Invalid { field: "secret", .. })),
            "{half:?}"
        );
        test_notifier
            .enqueue_notice(&firing(if has_key { "b" } else { "a" }))
            .await;
        eventually("it was tried", async || {
            test_notifier.outbox().await.iter().all(|one| one.attempts > 0)
        })
        .await;
        assert!(
            test_notifier
                .outbox()
                .await
                .iter()
                .all(|one| one.state == DeliveryState::Pending)
        );
        test_notifier.stopped().await;
    }
    std::fs::write(&file, kept).unwrap();
    let test_notifier = TestNotifier::on(store, config()).await;
    assert_eq!(stored(&test_notifier.db).await, sealed);
    test_notifier.are(DeliveryState::Delivered).await;
    assert_eq!(sink.received().len(), 2);
}

#[tokio::test]
async fn a_key_is_rotated_with_the_previous_key() {
    // Would catch rows left with the old key, so that they are lost when it is thrown away.
    let sink = WebhookSink::open().await;
    let notifier = TestNotifier::on(Store::sqlite(), with_key(OLD, None)).await;
    notifier.add("hook", ReceiverKind::Webhook, &[&sink.url]).await;
    assert!(!notifier.store.folder().join("leasehold.secret_key").exists());
    let old = stored(&notifier.db).await;
    let (store, _) = notifier.stopped().await;
    let notifier = TestNotifier::on(store, with_key(NEW, Some(OLD))).await;
    let new = stored(&notifier.db).await;
    assert_ne!(new, old);
    let (store, _) = notifier.stopped().await;
    let notifier = TestNotifier::on(store, with_key(NEW, None)).await;
    assert_eq!(stored(&notifier.db).await, new);
    says(&notifier, &sink, "a").await;
}

#[tokio::test]
async fn on_postgres_secrets_are_sealed_once_a_key_is_configured() {
    // Would catch a start that is refused, or that seals with a key that the other servers do not have.
    let sink = WebhookSink::open().await;
    let notifier = TestNotifier::on(Store::postgres().await, config()).await;
    notifier.add("hook", ReceiverKind::Webhook, &[&sink.url]).await;
    assert!(stored(&notifier.db).await.contains(SECRET));
    let (store, _) = notifier.stopped().await;
    let notifier = TestNotifier::on(store, with_key(OLD, None)).await;
    is_sealed(&stored(&notifier.db).await, &sink);
    says(&notifier, &sink, "a").await;
}
