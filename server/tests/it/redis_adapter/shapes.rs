//! The observed lock for each shape of key.

use ::backends::Backend;
use domain::observation::{Coverage, Lifetime, ObservedCondition};
use domain::reported::Reported;
use domain::safety::SafetyClass;

use super::{Setup, driver, hash, key, observe, run, start};

const OWNER: &str = "285475da-9152-4c83-822a-67ee2f116a79:52";
const OTHER: &str = "385475da-9152-4c83-822a-67ee2f116a79:7";

#[tokio::test]
async fn json_values_name_owner_lease_and_token() {
    // As a client with its own fencing writes them.
    let redis = start().await;
    let value = r#"{"ownerId":"worker-7","leaseId":"L1","fencingToken":9007199254740993}"#;
    run(
        &mut driver(&redis).await,
        &["SET", "lock:a", value, "NX", "PX", "30000"],
    )
    .await;
    let backend = Setup::new(&redis.url()).backend();
    let (pass, observed) = observe(&backend).await;
    let lock = observed.named("lock:a");
    assert_eq!(lock.source, key());
    assert_eq!(lock.owner.known().unwrap().as_str(), "worker-7");
    assert_eq!(lock.lease_id, Reported::Value("L1".into()));
    assert_eq!(
        lock.fencing_token.known().unwrap().number(),
        9_007_199_254_740_993
    );
    let Lifetime::Leased { remaining_ms, ttl_ms } = &lock.lifetime else {
        panic!("{lock:?}")
    };
    assert!((1..=30_000).contains(remaining_ms) && ttl_ms.is_unknown());
    assert!(lock.acquired_at.is_unknown() && lock.waiter_count.is_unknown());
    assert!(
        pass.sources
            .iter()
            .all(|source| source.coverage == Coverage::Complete && source.fault.is_none())
    );
    assert!(pass.clock.known().unwrap().offset_ms().abs() < 5_000);
    assert_eq!(backend.safety(&key()).class, SafetyClass::Efficiency);
}

#[tokio::test]
async fn raw_values_are_fingerprints_unless_configured() {
    // Two owners are distinguished; the generation covers the whole value, so it changes with each owner.
    let redis = start().await;
    let mut driver = driver(&redis).await;
    run(&mut driver, &["SET", "lock:a", "secret-1", "PX", "30000"]).await;
    run(&mut driver, &["SET", "lock:b", "secret-2", "PX", "30000"]).await;
    let (_, observed) = observe(&Setup::new(&redis.url()).backend()).await;
    let (a, b) = (observed.named("lock:a"), observed.named("lock:b"));
    let owner = a.owner.known().unwrap().as_str();
    assert!(
        owner
            .strip_prefix("fingerprint:")
            .is_some_and(|hex| hex.len() == 8),
        "{owner}"
    );
    assert_ne!(a.owner, b.owner);
    assert_ne!(a.generation, b.generation);
    assert!(a.generation.known().unwrap().as_str().len() >= 16);
    assert!(a.fencing_token.is_absent() && a.lease_id.is_absent());
    assert!(!format!("{:?}", observed.locks).contains("secret-"));
    let (_, observed) = observe(&Setup::new(&redis.url()).showing_values().backend()).await;
    assert_eq!(
        observed.named("lock:a").owner.known().unwrap().as_str(),
        "secret-1"
    );
}

#[tokio::test]
async fn redisson_hashes_are_locks_next_to_strings() {
    // The trap: one WRONGTYPE must not spoil the page. A read lock has several owners.
    let redis = start().await;
    let mut driver = driver(&redis).await;
    run(&mut driver, &["HSET", "lock:redisson", OWNER, "2"]).await;
    run(&mut driver, &["PEXPIRE", "lock:redisson", "30000"]).await;
    run(
        &mut driver,
        &["HSET", "lock:readers", "mode", "read", OWNER, "1", OTHER, "1"],
    )
    .await;
    run(&mut driver, &["SET", "lock:string", "x", "PX", "30000"]).await;
    let backend = Setup::new(&redis.url()).backend();
    let (_, observed) = observe(&backend).await;
    assert_eq!(observed.locks.len(), 3);
    let lock = observed.named("lock:redisson");
    assert_eq!((&lock.source, lock.owner_count), (&hash(), 1));
    assert_eq!(lock.owner.known().unwrap().as_str(), OWNER);
    assert!(matches!(
        lock.lifetime,
        Lifetime::Leased {
            remaining_ms: 1..=30_000,
            ..
        }
    ));
    let readers = observed.named("lock:readers");
    assert_eq!(readers.owner_count, 2);
    assert!(matches!(readers.lifetime, Lifetime::NoTtl { .. }));
    assert_eq!(observed.named("lock:string").source, key());
    // Taken once more by the same thread: the same acquisition.
    run(&mut driver, &["HINCRBY", "lock:redisson", OWNER, "1"]).await;
    let (_, again) = observe(&backend).await;
    assert_eq!(again.named("lock:redisson").generation, lock.generation);
}

#[tokio::test]
async fn every_other_type_is_a_row_with_its_type() {
    // Never an error page, never unlockable: no generation.
    let redis = start().await;
    let mut driver = driver(&redis).await;
    run(&mut driver, &["RPUSH", "lock:list", "a"]).await;
    run(&mut driver, &["SADD", "lock:set", "a"]).await;
    run(&mut driver, &["ZADD", "lock:zset", "1", "a"]).await;
    run(&mut driver, &["XADD", "lock:stream", "*", "a", "b"]).await;
    run(&mut driver, &["HSET", "lock:hash", "name", "x"]).await;
    let many: Vec<String> = (0..4_000).map(|n| n.to_string()).collect();
    let mut large = vec!["HSET", "lock:large"];
    large.extend(many.iter().map(String::as_str));
    run(&mut driver, &large).await;
    let (pass, observed) = observe(&Setup::new(&redis.url()).backend()).await;
    assert_eq!(observed.locks.len(), 6);
    assert!(
        pass.sources
            .iter()
            .all(|source| source.coverage == Coverage::Complete)
    );
    for (name, word) in [
        ("list", "list"),
        ("set", "set"),
        ("zset", "zset"),
        ("stream", "stream"),
        ("hash", "hash"),
        ("large", "2000 fields"),
    ] {
        let lock = observed.named(format!("lock:{name}"));
        let Some(ObservedCondition::Unrecognised { why }) = &lock.condition else {
            panic!("{lock:?}")
        };
        assert!(why.contains(word), "{why}");
        assert!(lock.generation.is_unknown() && lock.owner.is_unknown() && lock.source == key());
        assert!(matches!(lock.lifetime, Lifetime::Unknown { .. }));
    }
}

#[tokio::test]
async fn a_key_without_ttl_is_flagged_and_an_expired_one_removed() {
    // PTTL -1 and -2.
    let redis = start().await;
    let mut driver = driver(&redis).await;
    run(&mut driver, &["SET", "lock:immortal", "x"]).await;
    run(&mut driver, &["SET", "lock:brief", "x", "PX", "1"]).await;
    let backend = Setup::new(&redis.url()).backend();
    testkit::eventually("lock:brief is gone", async || {
        let (_, observed) = observe(&backend).await;
        assert!(matches!(
            observed.named("lock:immortal").lifetime,
            Lifetime::NoTtl { .. }
        ));
        !observed.has("lock:brief")
    })
    .await;
}

#[tokio::test]
async fn hostile_names_and_values_are_handled() {
    // Bytes that are no UTF-8, a name of 10 KB, one over the limit, controls, globs, markup, RESP, long values.
    let redis = start().await;
    let mut driver = driver(&redis).await;
    let long = [b"lock:".as_slice(), &vec![b'k'; 10_000]].concat();
    let too_long = [b"lock:".as_slice(), &vec![b'k'; 70_000]].concat();
    let names: [&[u8]; 9] = [
        b"lock:\xff\xfe\x00",
        b"lock:",
        b"lock:\r\n*1\r\n$8\r\nFLUSHALL\r\n",
        b"lock:<script>alert(1)</script>",
        b"lock:*?[a]\\",
        "lock:\u{202e}\u{200b}е".as_bytes(),
        b"lock: ' OR 1=1; --",
        b"lock:{}",
        &long,
    ];
    for name in names.into_iter().chain([too_long.as_slice()]) {
        let mut set = redis::cmd("SET");
        set.arg(name).arg("x").arg("PX").arg(60_000);
        set.exec_async(&mut driver).await.unwrap();
    }
    let megabytes = "v".repeat(3 * 1024 * 1024);
    run(&mut driver, &["SET", "lock:big", &megabytes, "PX", "60000"]).await;
    run(&mut driver, &["SET", "lock:empty", "", "PX", "60000"]).await;
    run(&mut driver, &["SET", "lock:json", "{\"ownerId\":", "PX", "60000"]).await;
    for setup in [
        Setup::new(&redis.url()),
        Setup::new(&redis.url()).showing_values(),
    ] {
        let backend = setup.backend();
        for _ in 0..2 {
            let (pass, observed) = observe(&backend).await;
            assert_eq!(observed.locks.len(), names.len() + 3);
            for name in names {
                assert!(observed.named(name).generation.is_known());
            }
            assert!(observed.named("lock:big").generation.is_unknown());
            assert!(observed.named("lock:empty").owner.is_known());
            let Coverage::Partial { of: Some(13), .. } = pass.sources[0].coverage else {
                panic!("{pass:?}")
            };
        }
    }
}

#[tokio::test]
async fn names_over_the_limit_do_not_hide_that_a_lock_is_gone() {
    // One name over the limit: no lock has it, so all locks were read. Then names within the limit that are more than
    // one reply may have: some of them were not read.
    let redis = start().await;
    let mut driver = driver(&redis).await;
    let name = |number: usize, bytes: usize| format!("lock:{number:03}{}", "k".repeat(bytes));
    run(&mut driver, &["SET", "lock:a", "x", "PX", "60000"]).await;
    run(&mut driver, &["SET", &name(0, 70_000), "x", "PX", "60000"]).await;
    let backend = Setup::new(&redis.url()).backend();
    let (pass, observed) = observe(&backend).await;
    assert!(!pass.sources[0].coverage.is_complete());
    assert!(observed.has("lock:a") && observed.has_read("lock:gone"));
    for number in 1..=200 {
        run(&mut driver, &["SET", &name(number, 60_000), "x", "PX", "60000"]).await;
    }
    let (pass, observed) = observe(&backend).await;
    assert!(!pass.sources[0].coverage.is_complete());
    assert!(!observed.has_read("lock:gone"));
}
