//! Plain keys: names, owners, tokens, and the fields that etcd does not provide.

use ::backends::Backend;
use domain::observation::{Coverage, Lifetime, ObservedCondition};
use domain::reported::Reported;

use super::watched_etcd::{WatchedEtcd, granted_ms, owner, remaining_ms, seen, source_of, token};

#[tokio::test]
async fn a_key_on_a_lease_is_a_lock_with_owner_token_and_both_times() {
    // One key on a lease of 60 s; everything that contracts promise about it.
    let mut watched = WatchedEtcd::start().await;
    let lease = watched.lease(60).await;
    let revision = watched.put("/locks/orders:1", "worker-7", lease).await;
    let seen = watched.seen().await;
    let lock = seen.lock("key", "/locks/orders:1");
    assert_eq!(owner(lock), "worker-7");
    assert_eq!(lock.lease_id.known().unwrap().as_ref(), format!("{lease:x}"));
    assert_eq!(token(lock), revision);
    let generation = lock.generation.known().unwrap().as_str();
    assert!(
        generation.starts_with(&format!("rev:{revision}@")),
        "{generation}"
    );
    assert_eq!(granted_ms(lock), 60_000);
    assert!((50_000..=60_000).contains(&remaining_ms(lock)), "{lock:?}");
    assert!(lock.acquired_at.is_unknown() && lock.renewed_at.is_unknown() && lock.waiter_count.is_unknown());
    assert!(seen.whole() && seen.pass().clock.is_unknown());
    assert_eq!(watched.backend.grain_ms(&source_of("key")), 1_000);
    assert_eq!(
        watched.backend.safety(&source_of("key")).class.as_str(),
        "correctness"
    );
}

#[tokio::test]
async fn the_token_stays_over_a_rewrite_and_rises_with_a_new_key() {
    // The holder rewrites its value; then the key is deleted and created again.
    let mut watched = WatchedEtcd::start().await;
    let lease = watched.lease(60).await;
    let first = watched.put("/locks/a", "one", lease).await;
    watched.put("/locks/a", "two", lease).await;
    let again = watched.seen().await;
    assert_eq!(
        (
            token(again.lock("key", "/locks/a")),
            owner(again.lock("key", "/locks/a"))
        ),
        (first, "two")
    );
    watched.client.delete("/locks/a", None).await.unwrap();
    let second = watched.put("/locks/a", "three", lease).await;
    assert!(second > first);
    assert_eq!(token(watched.seen().await.lock("key", "/locks/a")), second);
}

#[tokio::test]
async fn owners_are_read_from_json_text_or_the_lease() {
    // Four values as clients write them.
    let mut watched = WatchedEtcd::start().await;
    let lease = watched.lease(60).await;
    watched
        .put("/locks/json", r#"{"ownerId":"pod-3","since":1}"#, lease)
        .await;
    watched.put("/locks/empty", "", lease).await;
    watched.put("/locks/bytes", b"w\xff".to_vec(), lease).await;
    watched.put("/locks/long", "x".repeat(1_000_000), lease).await;
    let seen = watched.seen().await;
    assert_eq!(owner(seen.lock("key", "/locks/json")), "pod-3");
    assert_eq!(owner(seen.lock("key", "/locks/empty")), format!("{lease:x}"));
    assert_eq!(owner(seen.lock("key", "/locks/bytes")), "0x77ff");
    assert_eq!(
        owner(seen.lock("key", "/locks/long")).chars().count(),
        domain::limits::OWNER_CHARS_MAX
    );
}

#[tokio::test]
async fn a_key_without_a_lease_has_no_ttl_with_a_reason() {
    // The adapter reports neither a lease nor a time for it.
    let mut watched = WatchedEtcd::start().await;
    watched.put("/locks/for-ever", "me", 0).await;
    let seen = watched.seen().await;
    let lock = seen.lock("key", "/locks/for-ever");
    assert!(matches!(lock.lifetime, Lifetime::NoTtl { .. }));
    assert!(lock.lease_id.is_absent());
    let detail = watched
        .backend
        .inspect(&lock.source, &lock.resource)
        .await
        .unwrap();
    assert!(
        detail
            .raw
            .iter()
            .any(|field| field.name == "lease" && field.value == "none"),
        "{:?}",
        detail.raw
    );
}

#[tokio::test]
async fn hostile_names_are_read_byte_for_byte() {
    // Not UTF-8, backslashes, quotes, control and bidirectional characters, 10 KB, glob signs, and the ends of ranges.
    let mut watched = WatchedEtcd::start().await;
    let names: Vec<Vec<u8>> = vec![
        b"/locks/\xff\xfe\x00end".to_vec(),
        b"/locks/back\\slash".to_vec(),
        b"/locks/\xff\\x41".to_vec(),
        "/locks/<script>'\"; DROP".into(),
        "/locks/\u{202e}gnp\u{200b}\n".into(),
        b"/locks/*?[a]{b}".to_vec(),
        b"/locks/".to_vec(),
        b"/locks/\xff\xff".to_vec(),
        format!("/locks/{}", "k".repeat(10_000)).into(),
        "/locks//".into(),
    ];
    for name in &names {
        watched.put(name.clone(), "o", 0).await;
    }
    // Just outside.
    watched.put("/locks0", "o", 0).await;
    watched.put("/locks", "o", 0).await;
    let seen = watched.seen().await;
    assert!(seen.whole());
    let mut expected = names.clone();
    let mut found: Vec<Vec<u8>> = seen
        .locks
        .values()
        .map(|(_, lock)| lock.resource.as_bytes().to_vec())
        .collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
    for (_, lock) in seen.locks.values() {
        let detail = watched
            .backend
            .inspect(&lock.source, &lock.resource)
            .await
            .unwrap();
        assert_eq!(detail.lock.unwrap().resource, lock.resource);
    }
}

#[tokio::test]
async fn oversized_names_and_values_make_the_scan_partial() {
    // A key of 70 KB is skipped and reported; 60 values of 1 MB exceed one response.
    let mut watched = WatchedEtcd::start().await;
    for n in 0..60 {
        watched
            .put(format!("/locks/big/{n:02}"), vec![b'v'; 1_000_000], 0)
            .await;
    }
    let seen = watched.seen().await;
    assert_eq!(seen.locks.len(), 60);
    assert!(seen.whole(), "{:?}", seen.pass());
    watched
        .put(format!("/locks/{}", "k".repeat(70_000)), "o", 0)
        .await;
    let seen = watched.seen().await;
    assert_eq!(seen.locks.len(), 60);
    let coverage = &seen.pass().sources[0].coverage;
    assert!(
        matches!(coverage, Coverage::Partial { why, .. } if why.contains("65536")),
        "{coverage:?}"
    );
}

#[tokio::test]
async fn a_value_over_the_response_limit_is_not_read() {
    // etcd set up for large values: the key is shown without its value, the others in full, and a queue keeps its
    // holder.
    let etcd = super::watched_etcd::etcd(&["--max-request-bytes=30000000"]).await;
    let mut watched = WatchedEtcd {
        client: super::watched_etcd::client(&etcd.endpoint()).await,
        backend: super::watched_etcd::backend(&[etcd.endpoint()], &["/locks/"], |_| {}),
        etcd,
    };
    watched.put("/locks/a", "worker", 0).await;
    watched.put("/locks/large", vec![b'v'; 10_000_000], 0).await;
    for n in 0..100 {
        watched.put(format!("/locks/z/{n:03}"), "worker", 0).await;
    }
    let (lease, _) = watched.enqueue("/locks/queue", "first", 60).await;
    watched
        .put(format!("/locks/queue/{lease:x}"), vec![b'v'; 10_000_000], lease)
        .await;
    let (_, revision) = watched.enqueue("/locks/queue", "second", 60).await;
    let seen = watched.seen().await;
    assert!(seen.whole(), "{:?}", seen.pass());
    assert_eq!(seen.locks.len(), 103);
    let lock = |name: &str| {
        let mut locks = seen.locks.values().map(|(_, lock)| lock);
        locks.find(|lock| lock.resource == name.into()).unwrap()
    };
    assert!(lock("/locks/a").owner.is_known() && lock("/locks/z/099").owner.is_known());
    let large = lock("/locks/large");
    assert!(large.owner.is_unknown() && large.generation.is_unknown());
    assert!(
        matches!(&large.condition, Some(ObservedCondition::Unrecognised { why }) if why.contains("4 MiB: not read"))
    );
    let queue = lock("/locks/queue");
    assert!(queue.owner.is_unknown() && queue.waiter_count == Reported::Value(1));
    assert!(queue.generation.is_known() && queue.fencing_token.known().unwrap().number() < revision);
    let detail = watched
        .backend
        .inspect(&large.source, &large.resource)
        .await
        .unwrap();
    assert!(detail.blast_radius.is_unknown(), "{detail:?}");
    let value = detail.raw.iter().find(|field| field.name == "value").unwrap();
    assert!(value.value.contains("not read"), "{value:?}");
}

#[tokio::test]
async fn overlapping_prefixes_and_the_empty_one_list_each_key_once() {
    // A nested, a repeated and the empty prefix; keys outside of all prefixes are left out.
    let mut watched = WatchedEtcd::start().await;
    for key in ["/locks/a", "/locks/b/c", "elsewhere"] {
        watched.put(key, "o", 0).await;
    }
    let endpoint = [watched.etcd.endpoint()];
    let backend = super::watched_etcd::backend(&endpoint, &["/locks/b/", "/locks/", "/locks/"], |_| {});
    let nested = seen(&backend).await.unwrap();
    assert_eq!(nested.names(), [("key", "/locks/a"), ("key", "/locks/b/c")]);
    let backend = super::watched_etcd::backend(&endpoint, &["", "/locks/"], |_| {});
    let all = seen(&backend).await.unwrap();
    assert_eq!((nested.rows, all.rows, all.locks.len()), (2, 3, 3));
}
