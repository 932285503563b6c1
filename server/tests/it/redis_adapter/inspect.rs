//! One lock read fresh, with its record.

use ::backends::Backend;
use domain::names::Resource;
use domain::observation::RawField;

use super::{Seen, Setup, driver, hash, key, run, start};

fn value_of<'a>(raw: &'a [RawField], name: &str) -> &'a str {
    raw.iter()
        .find(|field| field.name == name)
        .map_or_else(|| panic!("no {name} in {raw:?}"), |field| &field.value)
}

#[tokio::test]
async fn a_string_shows_its_value_only_if_configured() {
    // The record of a JSON lock and of a secret.
    let redis = start().await;
    let mut driver = driver(&redis).await;
    run(
        &mut driver,
        &[
            "SET",
            "lock:a",
            r#"{"ownerId":"w","leaseId":"L","fencingToken":7}"#,
            "PX",
            "60000",
        ],
    )
    .await;
    run(&mut driver, &["SET", "lock:raw", "secret"]).await;
    let backend = Setup::new(&redis.url()).backend();
    let observed = backend.inspect(&key(), &"lock:a".into()).await.unwrap();
    for (name, value) in [
        ("type", "string"),
        ("ownerId", "w"),
        ("leaseId", "L"),
        ("fencingToken", "7"),
        ("encoding", "raw"),
    ] {
        assert_eq!(value_of(&observed.raw, name), value);
    }
    assert!(value_of(&observed.raw, "PTTL").ends_with(" ms"));
    assert_eq!(observed.owners[0].as_str(), "w");
    let raw = backend.inspect(&key(), &"lock:raw".into()).await.unwrap();
    assert_eq!(value_of(&raw.raw, "value"), "fingerprint:2bb80d53");
    assert_eq!(value_of(&raw.raw, "PTTL"), "-1 (no TTL)");
    assert!(!format!("{raw:?}").contains("\"secret\""));
    let shown = Setup::new(&redis.url()).showing_values().backend();
    let shown = shown.inspect(&key(), &"lock:raw".into()).await.unwrap();
    assert_eq!(value_of(&shown.raw, "value"), "secret");
}

#[tokio::test]
async fn a_redisson_lock_shows_owners_and_counts() {
    // A read lock: its mode, and every reader.
    let redis = start().await;
    let (a, b) = (
        "285475da-9152-4c83-822a-67ee2f116a79:52",
        "385475da-9152-4c83-822a-67ee2f116a79:7",
    );
    run(
        &mut driver(&redis).await,
        &["HSET", "lock:h", "mode", "read", a, "3", b, "1"],
    )
    .await;
    let backend = Setup::new(&redis.url()).backend();
    let observed = backend.inspect(&hash(), &"lock:h".into()).await.unwrap();
    assert_eq!(
        observed
            .owners
            .iter()
            .map(|owner| owner.as_str())
            .collect::<Vec<_>>(),
        [a, b]
    );
    assert_eq!(value_of(&observed.raw, "mode"), "read");
    assert_eq!(value_of(&observed.raw, a), "re-entered 3");
    assert_eq!(observed.lock.unwrap().owner_count, 2);
}

#[tokio::test]
async fn a_missing_key_or_another_source_is_no_lock() {
    // A name without a key, a name of another source, a name that is no UTF-8, a list.
    let redis = start().await;
    let mut driver = driver(&redis).await;
    run(&mut driver, &["SET", "lock:a", "x"]).await;
    run(&mut driver, &["RPUSH", "lock:list", "x"]).await;
    let backend = Setup::new(&redis.url()).backend();
    assert!(
        backend
            .inspect(&key(), &"lock:none".into())
            .await
            .unwrap()
            .lock
            .is_none()
    );
    assert!(
        backend
            .inspect(&hash(), &"lock:a".into())
            .await
            .unwrap()
            .lock
            .is_none()
    );
    assert!(
        backend
            .inspect(&key(), &Resource::from_bytes(b"\xff"))
            .await
            .unwrap()
            .lock
            .is_none()
    );
    let list = backend.inspect(&key(), &"lock:list".into()).await.unwrap();
    assert!(list.lock.unwrap().condition.is_some());
    assert_eq!(value_of(&list.raw, "type"), "list");
}

#[tokio::test]
async fn a_key_outside_the_patterns_is_never_read() {
    // The name may come from a URL: the database holds more than locks.
    let redis = start().await;
    let mut driver = driver(&redis).await;
    run(&mut driver, &["SET", "session:1", r#"{"ownerId":"secret"}"#]).await;
    let backend = Setup::new(&redis.url()).showing_values().backend();
    let observed = backend.inspect(&key(), &"session:1".into()).await.unwrap();
    assert!(observed.lock.is_none() && observed.raw.is_empty() && observed.owners.is_empty());
    let mut refreshed = Seen::default();
    backend
        .refresh(&[(key(), "session:1".into())], &mut refreshed)
        .await
        .unwrap();
    assert!(refreshed.locks.is_empty() && refreshed.gone.len() == 3);
}
