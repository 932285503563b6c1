//! What opens receivers, in the store: sealed, opened by the right key alone, and lost by no mistake with keys.

use std::os::unix::fs::PermissionsExt as _;

use leasehold::config::NotifyConfig;
use leasehold::db::Db;
use leasehold::identity::Who;
use leasehold::notify::{DeliveryState, Kind, NotifyError};
use sqlx::Row as _;

use super::stage::{SECRET, Stage, Store, config, firing};
use crate::support::ear::Ear;
use crate::support::eventually::eventually;

const OLD: &str = "11e2b6a0c4d8f3957a6b1c2d3e4f5061728394a5b6c7d8e9f00112233445566a";
const NEW: &str = "99e2b6a0c4d8f3957a6b1c2d3e4f5061728394a5b6c7d8e9f00112233445566b";

fn with_key(key: &str, before: Option<&str>) -> NotifyConfig {
    NotifyConfig {
        secret_key: Some(key.into()),
        secret_key_before: before.map(Into::into),
        ..config()
    }
}

/// Every text of every receiver as it lies in the store.
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

fn is_sealed(text: &str, ear: &Ear) {
    assert!(!text.contains(SECRET) && !text.contains(&ear.url), "{text}");
    assert_eq!(text.matches("leasehold-sealed:1:").count(), 2, "{text}");
}

async fn says(stage: &Stage, ear: &Ear, resource: &str) {
    let before = ear.heard().len();
    stage.tell(&firing(resource)).await;
    ear.hears(before + 1).await;
}

#[tokio::test]
async fn what_lay_in_clear_is_sealed_at_the_next_start_and_still_used() {
    // Would catch secrets of an older version left in clear, sealed for good, or a key that others may read.
    let ear = Ear::open().await;
    let stage = Stage::start().await;
    stage.add("hook", Kind::Webhook, &[&ear.url]).await;
    is_sealed(&stored(&stage.db).await, &ear);
    // As a version that did not seal wrote them.
    let clear = format!(
        "UPDATE receivers SET urls = '[\"{}\"]', secret = '{SECRET}'",
        ear.url
    );
    stage.sql(&clear).await;
    let file = stage.store.folder().join("leasehold.secret_key");
    let key = std::fs::read_to_string(&file).unwrap();
    let stage = stage.again().await;
    is_sealed(&stored(&stage.db).await, &ear);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), key);
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    says(&stage, &ear, "a").await;
    assert!(ear.heard()[0].header("x-signature").starts_with("sha256="));
}

#[tokio::test]
async fn with_the_wrong_key_nothing_is_lost_and_the_mend_is_said() {
    // Would catch a message that is dropped, a secret that is overwritten, or a new key in the place of the missing one.
    let ear = Ear::open().await;
    let stage = Stage::start().await;
    stage.add("hook", Kind::Webhook, &[&ear.url]).await;
    let sealed = stored(&stage.db).await;
    let file = stage.store.folder().join("leasehold.secret_key");
    let (store, _) = stage.stopped().await;
    let kept = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    for config in [config(), with_key(NEW, None)] {
        let has_key = config.secret_key.is_some();
        let stage = Stage::on(store.beside(), config).await;
        assert_eq!(stored(&stage.db).await, sealed);
        assert!(!file.exists(), "a second key lies where the first is put back");
        let view = &stage.notifier.receivers().await.unwrap()[0];
        let why = view.fault().unwrap();
        assert!(why.contains("secret_key_before") && view.has_secret, "{why}");
        let tried = stage.notifier.try_out(&Who::system("test"), "hook").await;
        assert!(matches!(tried, Err(NotifyError::Locked { .. })), "{tried:?}");
        // Half of it anew would be half of it lost.
        let urls = [ear.url.as_str().into()];
        let half = stage
            .notifier
            .change(&Who::system("test"), "hook", &urls, None)
            .await;
        assert!(
            matches!(half, Err(NotifyError::Invalid { field: "secret", .. })),
            "{half:?}"
        );
        stage.tell(&firing(if has_key { "b" } else { "a" })).await;
        eventually("it was tried", async || {
            stage.outbox().await.iter().all(|one| one.attempts > 0)
        })
        .await;
        assert!(
            stage
                .outbox()
                .await
                .iter()
                .all(|one| one.state == DeliveryState::Pending)
        );
        stage.stopped().await;
    }
    std::fs::write(&file, kept).unwrap();
    let stage = Stage::on(store, config()).await;
    assert_eq!(stored(&stage.db).await, sealed);
    stage.are(DeliveryState::Delivered).await;
    assert_eq!(ear.heard().len(), 2);
}

#[tokio::test]
async fn a_key_is_changed_by_naming_the_old_one_once() {
    // Would catch rows left with the old key, so that they are lost when it is thrown away.
    let ear = Ear::open().await;
    let stage = Stage::on(Store::sqlite(), with_key(OLD, None)).await;
    stage.add("hook", Kind::Webhook, &[&ear.url]).await;
    assert!(!stage.store.folder().join("leasehold.secret_key").exists());
    let old = stored(&stage.db).await;
    let (store, _) = stage.stopped().await;
    let stage = Stage::on(store, with_key(NEW, Some(OLD))).await;
    let new = stored(&stage.db).await;
    assert_ne!(new, old);
    let (store, _) = stage.stopped().await;
    let stage = Stage::on(store, with_key(NEW, None)).await;
    assert_eq!(stored(&stage.db).await, new);
    says(&stage, &ear, "a").await;
}

#[tokio::test]
async fn on_postgres_secrets_are_sealed_once_a_key_is_configured() {
    // Would catch a start that is refused, or that seals with a key that the other servers do not have.
    let ear = Ear::open().await;
    let stage = Stage::on(Store::postgres().await, config()).await;
    stage.add("hook", Kind::Webhook, &[&ear.url]).await;
    assert!(stored(&stage.db).await.contains(SECRET));
    let (store, _) = stage.stopped().await;
    let stage = Stage::on(store, with_key(OLD, None)).await;
    is_sealed(&stored(&stage.db).await, &ear);
    says(&stage, &ear, "a").await;
}
