//! The account of the documentation, accounts with fewer permissions, and the probe's findings for each.

use ::backends::{Backend, BackendError, Probe};
use ::testkit::Redis;
use domain::backend::AccountPermission;
use domain::names::{Resource, Source};
use domain::observation::{Coverage, ObservedCondition};
use domain::reported::Reported;

use super::{Seen, Setup, driver, hash, key, observe, run, start, start_with, try_observe};

const DOCS: &str = include_str!("../../../../docs/backends/redis.md");

/// The one fenced block that makes the account that watches.
fn documented_account() -> Vec<String> {
    let mut blocks = DOCS
        .split("```")
        .filter(|block| block.contains("ACL SETUSER leasehold-watch"));
    let block = blocks
        .next()
        .expect("docs/backends/redis.md has no ACL SETUSER block");
    assert!(blocks.next().is_none(), "one block only");
    let lines = block
        .lines()
        .skip(1)
        .collect::<Vec<_>>()
        .join(" ")
        .replace('\\', " ");
    lines.split_whitespace().map(str::to_owned).collect()
}

pub(super) async fn create(redis: &Redis, words: &[String]) {
    run(
        &mut driver(redis).await,
        &words.iter().map(String::as_str).collect::<Vec<_>>(),
    )
    .await;
}

fn right<'a>(probe: &'a Probe, what: &str) -> &'a AccountPermission {
    probe
        .rights
        .iter()
        .find(|right| right.what == what)
        .unwrap_or_else(|| panic!("no {what}"))
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one list of what is refused, in one place")]
async fn the_documented_account_reads_everything_and_writes_nothing() {
    // The block of docs/backends/redis.md runs unchanged, with its own user and password.
    let words = documented_account();
    let user = words[2].clone();
    let password = words
        .iter()
        .find_map(|word| word.strip_prefix('>'))
        .unwrap()
        .to_owned();
    let redis = start_with(|options| options.notify_keyspace_events = Some("KEA".to_owned())).await;
    create(&redis, &words).await;
    let mut driver = driver(&redis).await;
    run(&mut driver, &["SET", "lock:a", "x", "PX", "60000"]).await;
    run(
        &mut driver,
        &["HSET", "lock:h", "285475da-9152-4c83-822a-67ee2f116a79:52", "1"],
    )
    .await;
    run(&mut driver, &["RPUSH", "lock:list", "x"]).await;
    run(&mut driver, &["ZADD", "lock:zset", "1", "x"]).await;
    let url = redis.url_for(&user, &password);
    let backend = Setup::new(&url).backend();
    let (pass, observed) = observe(&backend).await;
    assert_eq!(observed.locks.len(), 4);
    assert!(pass.clock.is_known());
    assert!(
        pass.sources
            .iter()
            .all(|source| source.coverage == Coverage::Complete && source.fault.is_none()),
        "{pass:?}"
    );
    assert!(
        backend
            .inspect(&hash(), &"lock:h".into())
            .await
            .unwrap()
            .raw
            .len()
            > 3
    );
    let probe = backend.probe().await.unwrap();
    assert!(probe.version.is_known());
    for right in &probe.rights {
        assert_eq!(right.allowed, Reported::Value(right.wanted), "{right:?}");
    }
    let hints = backends::Hints::default();
    let live = async { while hints.take().await.state != Some(domain::backend::WatchState::Live) {} };
    tokio::select! {
        () = backend.watch(hints.clone()) => panic!("the watch ended"),
        () = live => {}
    }
    let mut watcher = redis::Client::open(url)
        .unwrap()
        .get_multiplexed_async_connection()
        .await
        .unwrap();
    for words in [
        &["SET", "lock:a", "y"][..],
        &["DEL", "lock:a"],
        &["PEXPIRE", "lock:a", "1"],
        &["FLUSHALL"],
        &["FLUSHDB"],
        &["CONFIG", "SET", "maxmemory", "1"],
        &["EVAL", "return 1", "0"],
        &["GET", "other"],
        &["ACL", "SETUSER", "x"],
        &["PUBLISH", "a", "b"],
        &["KEYS", "*"],
        &["SHUTDOWN"],
    ] {
        let answer = redis::cmd(words[0])
            .arg(&words[1..])
            .query_async::<redis::Value>(&mut watcher)
            .await;
        assert!(
            answer
                .as_ref()
                .is_err_and(|error| error.to_string().contains("NoPerm") || error.code() == Some("NOPERM")),
            "{words:?}: {answer:?}"
        );
    }
}

#[tokio::test]
async fn an_account_with_all_permissions_is_reported() {
    // The default user: every unwanted right is there.
    let redis = start().await;
    let probe = Setup::new(&redis.url()).backend().probe().await.unwrap();
    assert_eq!(right(&probe, "SCAN").allowed, Reported::Value(true));
    for what in ["SET", "DEL", "FLUSHALL", "CONFIG SET", "EVAL"] {
        let right = right(&probe, what);
        assert!(
            right.allowed == Reported::Value(true) && !right.wanted && right.remedy.contains("ACL SETUSER"),
            "{right:?}"
        );
    }
}

#[tokio::test]
async fn permissions_come_from_acl_rules_or_are_unknown() {
    // Without ACL DRYRUN: from ACL GETUSER. Without that: unknown, with the reason.
    let redis = start_with(|options| {
        options.acl_users = vec![
            "rules on >pw ~lock:* -@all +scan +pttl +getrange +ping +acl|whoami +acl|getuser".to_owned(),
            "blind on >pw ~lock:* -@all +scan +pttl +getrange +ping +acl|whoami".to_owned(),
            "blinder on >pw ~lock:* -@all +scan +pttl +getrange +ping".to_owned(),
        ];
    })
    .await;
    let probe = Setup::new(&redis.url_for("rules", "pw"))
        .backend()
        .probe()
        .await
        .unwrap();
    assert!(probe.version.is_unknown());
    assert_eq!(right(&probe, "SCAN").allowed, Reported::Value(true));
    assert_eq!(right(&probe, "HGETALL").allowed, Reported::Value(false));
    assert_eq!(right(&probe, "SET").allowed, Reported::Value(false));
    for user in ["blind", "blinder"] {
        let probe = Setup::new(&redis.url_for(user, "pw"))
            .backend()
            .probe()
            .await
            .unwrap();
        assert!(
            probe.rights.iter().all(|right| right.allowed.is_unknown()),
            "{:?}",
            probe.rights
        );
    }
}

#[tokio::test]
async fn a_refused_command_fails_the_scan_with_its_name() {
    // SCAN, then PTTL, then GETRANGE missing: no pass without them.
    let redis = start_with(|options| {
        options.acl_users = vec![
            "noscan on >pw ~lock:* +@all -scan".to_owned(),
            "nopttl on >pw ~lock:* +@all -pttl".to_owned(),
            "nogetrange on >pw ~lock:* +@all -getrange".to_owned(),
        ];
    })
    .await;
    run(&mut driver(&redis).await, &["SET", "lock:a", "x"]).await;
    for (user, command) in [("noscan", "scan"), ("nopttl", "pttl"), ("nogetrange", "getrange")] {
        let error = try_observe(&Setup::new(&redis.url_for(user, "pw")).backend())
            .await
            .map(drop)
            .unwrap_err();
        assert!(
            matches!(&error, BackendError::Denied { detail, .. } if detail.contains(command)),
            "{error:?}"
        );
        assert!(error.remedy().contains("ACL SETUSER"), "{error:?}");
    }
}

#[tokio::test]
async fn unreadable_keys_are_rows_with_a_reason() {
    // SCAN names them, and each read of one is refused: the others must still be read.
    let redis =
        start_with(|options| options.acl_users = vec!["narrow on >pw %R~lock:mine:* +@all".to_owned()]).await;
    let mut driver = driver(&redis).await;
    run(&mut driver, &["SET", "lock:mine:a", "x", "PX", "60000"]).await;
    run(&mut driver, &["SET", "lock:theirs:a", "x", "PX", "60000"]).await;
    let (pass, observed) = observe(&Setup::new(&redis.url_for("narrow", "pw")).backend()).await;
    assert!(observed.named("lock:mine:a").owner.is_known());
    let theirs = observed.named("lock:theirs:a");
    assert!(
        matches!(&theirs.condition, Some(ObservedCondition::Unrecognised { why }) if why.contains("may not read"))
    );
    let source = pass.sources.iter().find(|source| source.source == key()).unwrap();
    assert_eq!(source.coverage, Coverage::Complete);
    assert!(
        source
            .fault
            .as_deref()
            .is_some_and(|fault| fault.contains("1 keys")),
        "{source:?}"
    );
}

#[tokio::test]
async fn collections_without_permission_name_the_missing_permission() {
    // Missing one by one; the strings are read all the same.
    for (missing, command, name) in [
        ("type", "TYPE", "hash"),
        ("hlen", "HLEN", "hash"),
        ("memory|usage", "MEMORY|USAGE", "hash"),
        ("hgetall", "HGETALL", "hash"),
        ("zcard", "ZCARD", "zset"),
        ("zrange", "ZRANGE", "zset"),
    ] {
        let redis = start_with(|options| {
            options.acl_users = vec![format!("less on >pw ~lock:* +@all -{missing}")];
        })
        .await;
        let mut driver = driver(&redis).await;
        run(&mut driver, &["SET", "lock:a", "x", "PX", "60000"]).await;
        run(
            &mut driver,
            &[
                "HSET",
                "lock:hash",
                "285475da-9152-4c83-822a-67ee2f116a79:52",
                "1",
            ],
        )
        .await;
        run(&mut driver, &["ZADD", "lock:zset", "1", "x"]).await;
        let (pass, observed) = observe(&Setup::new(&redis.url_for("less", "pw")).backend()).await;
        assert!(observed.named("lock:a").owner.is_known());
        let row = observed.named(format!("lock:{name}"));
        assert!(
            matches!(&row.condition, Some(ObservedCondition::Unrecognised { why }) if why.contains(command)),
            "{row:?}"
        );
        let faults: Vec<&str> = pass
            .sources
            .iter()
            .filter(|source| source.source.as_str() == name)
            .filter_map(|source| source.fault.as_deref())
            .collect();
        assert!(
            matches!(faults[..], [fault] if fault.contains(command)),
            "{faults:?}"
        );
    }
}

#[tokio::test]
async fn a_lock_that_becomes_unreadable_is_not_gone() {
    // A Redisson lock, first without the command that reads it, then without its key; a string goes on being read.
    for lost in [&["-hgetall"][..], &["resetkeys", "%R~lock:a"]] {
        let redis =
            start_with(|options| options.acl_users = vec!["less on >pw ~lock:* +@all".to_owned()]).await;
        let mut driver = driver(&redis).await;
        run(&mut driver, &["SET", "lock:a", "x", "PX", "60000"]).await;
        let fields = ["lock:h", "285475da-9152-4c83-822a-67ee2f116a79:52", "1"];
        run(&mut driver, &[&["HSET"][..], &fields].concat()).await;
        let backend = Setup::new(&redis.url_for("less", "pw")).backend();
        let (_, before) = observe(&backend).await;
        assert_eq!(before.named("lock:h").source, hash());
        run(&mut driver, &[&["ACL", "SETUSER", "less"][..], lost].concat()).await;
        let (pass, after) = observe(&backend).await;
        let coverage = |source: &Source| {
            let mut parts = pass.sources.iter();
            &parts.find(|part| part.source == *source).unwrap().coverage
        };
        assert!(!coverage(&hash()).is_complete(), "{lost:?}: {pass:?}");
        assert_eq!(*coverage(&key()), Coverage::Complete);
        let is_read = |name: &str| {
            let mut parts = after.parts.iter();
            parts.any(|(source, covers)| *source == hash() && covers(name.as_bytes()))
        };
        assert!(!is_read("lock:h") && is_read("lock:released"), "{lost:?}");
        let mut named = Seen::default();
        let names = ["lock:h", "lock:a"].map(|name| (hash(), Resource::from(name)));
        backend.refresh(&names, &mut named).await.unwrap();
        assert!(named.has("lock:h"));
        assert!(
            !named.gone.contains(&names[0]) && named.gone.contains(&names[1]),
            "{lost:?}: {:?}",
            named.gone
        );
    }
}
