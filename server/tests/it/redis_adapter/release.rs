//! Forced unlocks: one script that compares and deletes, Redisson's waiters woken, and never the next holder's lock.

mod inventory_refresh;
mod libraries;
mod races;
mod waiters;

use std::time::Duration;

use ::backends::redis::RedisBackend;
use ::backends::{Backend, no_release};
use ::testkit::Redis;
use domain::force_release::{CasualtyKind, Release};
use domain::generation::Generation;
use domain::names::{Resource, Source};
use futures::StreamExt;
use redis::aio::MultiplexedConnection;

use super::account::create;
use super::{Setup, driver, hash, key, run, start, start_with};
use crate::support::unlocking::{act, generation, unlock};

const A: &str = "285475da-9152-4c83-822a-67ee2f116a79:52";
const B: &str = "385475da-9152-4c83-822a-67ee2f116a79:7";
const DOCS: &str = include_str!("../../../../docs/backends/redis.md");
/// A lock as Symfony makes it.
const SYMFONY: &str = "local time = redis.call('TIME') local expires = time[1] * 1000 + 60000 \
    redis.call('ZADD', KEYS[1], expires, ARGV[1], expires, '__write__') \
    return redis.call('PEXPIREAT', KEYS[1], expires)";

fn unlocker(redis: &Redis) -> RedisBackend {
    Setup::new(&redis.url()).unlocking(&redis.url()).backend()
}

async fn exists(connection: &mut MultiplexedConnection, name: &str) -> bool {
    run(connection, &["EXISTS", name]).await == redis::Value::Int(1)
}

/// Messages of one channel, from now on.
async fn listen(redis: &Redis, channel: &str) -> redis::aio::PubSub {
    let client = redis::Client::open(redis.url()).unwrap();
    let mut channels = client.get_async_pubsub().await.unwrap();
    channels.subscribe(channel).await.unwrap();
    channels
}

async fn message(channels: &mut redis::aio::PubSub) -> String {
    let next = tokio::time::timeout(Duration::from_secs(20), channels.on_message().into_future());
    let (message, _) = next.await.expect("a message within 20 s");
    message.unwrap().get_payload().unwrap()
}

#[tokio::test]
async fn every_string_lock_is_released_once() {
    // Raw, JSON, bytes that are no text, without a TTL. A second release finds the lock free.
    let redis = start().await;
    let mut driver = driver(&redis).await;
    let backend = unlocker(&redis);
    run(&mut driver, &["SET", "lock:raw", "secret", "PX", "60000"]).await;
    run(
        &mut driver,
        &[
            "SET",
            "lock:json",
            r#"{"ownerId":"w","leaseId":"L1"}"#,
            "PX",
            "60000",
        ],
    )
    .await;
    run(&mut driver, &["SET", "lock:immortal", "secret"]).await;
    let mut bytes = redis::cmd("SET");
    bytes.arg("lock:bytes").arg(&b"\xff\x00\xfe"[..]);
    let _: redis::Value = bytes.query_async(&mut driver).await.unwrap();
    for name in ["lock:raw", "lock:json", "lock:immortal", "lock:bytes"] {
        let resource = Resource::from(name);
        let observed = backend.inspect(&key(), &resource).await.unwrap();
        assert!(observed.blast_radius.known().unwrap().dies.is_empty());
        let observed = generation(&backend, &key(), &resource).await;
        let release = || async {
            backend
                .release(&key(), &resource, &observed, &act())
                .await
                .unwrap()
        };
        assert_eq!(release().await, Release::Released, "{name}");
        assert!(!exists(&mut driver, name).await, "{name}");
        assert_eq!(release().await, Release::AlreadyFree, "{name}");
    }
}

#[tokio::test]
async fn next_holders_and_other_types_are_not_touched() {
    // Between review and release: another value, a list under the same name. A key that fits no pattern; a type that is no lock.
    let redis = start().await;
    let mut driver = driver(&redis).await;
    let backend = unlocker(&redis);
    let resource = Resource::from("lock:a");
    run(&mut driver, &["SET", "lock:a", "one", "PX", "60000"]).await;
    let old = generation(&backend, &key(), &resource).await;
    run(&mut driver, &["SET", "lock:a", "two", "PX", "60000"]).await;
    let answer = backend.release(&key(), &resource, &old, &act()).await.unwrap();
    let now = generation(&backend, &key(), &resource).await;
    assert!(
        matches!(&answer, Release::HolderChanged { now: holding } if holding.generation.known() == Some(&now)),
        "{answer:?}"
    );
    run(&mut driver, &["DEL", "lock:a"]).await;
    run(&mut driver, &["RPUSH", "lock:a", "x"]).await;
    for wanted in [&old, &Generation::new("value:")] {
        let answer = backend.release(&key(), &resource, wanted, &act()).await.unwrap();
        assert!(matches!(answer, Release::Refused { .. }), "{answer:?}");
    }
    assert!(
        backend
            .inspect(&key(), &resource)
            .await
            .unwrap()
            .blast_radius
            .is_unknown()
    );
    run(&mut driver, &["SET", "other", "one"]).await;
    let answer = backend
        .release(&key(), &"other".into(), &old, &act())
        .await
        .unwrap();
    assert!(
        matches!(&answer, Release::Refused { why, .. } if why.contains("configured pattern")),
        "{answer:?}"
    );
    assert!(exists(&mut driver, "lock:a").await && exists(&mut driver, "other").await);
}

#[tokio::test]
async fn without_an_unlock_url_release_is_refused() {
    // The capability says so as well.
    let redis = start().await;
    run(&mut driver(&redis).await, &["SET", "lock:a", "one"]).await;
    let backend = Setup::new(&redis.url()).backend();
    assert!(no_release(&backend).unwrap().contains("unlock_user"));
    let answer = unlock(&backend, &key(), &"lock:a".into()).await;
    assert!(
        matches!(&answer, Release::Refused { why, .. } if why.contains("unlock_user")),
        "{answer:?}"
    );
    assert_eq!(no_release(&unlocker(&redis)), None);
}

#[tokio::test]
async fn an_unlock_account_on_another_server_is_detected() {
    // The key is there for the watching account, and on another server for the unlocking one.
    let (redis, elsewhere) = (start().await, start().await);
    run(&mut driver(&redis).await, &["SET", "lock:a", "one"]).await;
    let backend = Setup::new(&redis.url()).unlocking(&elsewhere.url()).backend();
    let answer = unlock(&backend, &key(), &"lock:a".into()).await;
    assert!(
        matches!(&answer, Release::Refused { remedy, .. } if remedy.contains("same server")),
        "{answer:?}"
    );
}

#[tokio::test]
async fn the_value_is_in_no_log_and_no_response() {
    // MONITOR shows every command: the generation, the answer and the commands of the release do not contain the value.
    let redis = start_with(|options| {
        options.config = vec![
            "slowlog-log-slower-than 0".to_owned(),
            "slowlog-max-len 1000".to_owned(),
        ];
    })
    .await;
    let mut monitor = redis::Client::open(redis.url())
        .unwrap()
        .get_async_monitor()
        .await
        .unwrap();
    let secret = "canary-5c1f";
    let backend = unlocker(&redis);
    let mut driver = driver(&redis).await;
    run(&mut driver, &["SET", "lock:a", secret]).await;
    run(&mut driver, &["SLOWLOG", "RESET"]).await;
    let observed = generation(&backend, &key(), &"lock:a".into()).await;
    let answer = backend
        .release(&key(), &"lock:a".into(), &observed, &act())
        .await
        .unwrap();
    assert_eq!(answer, Release::Released);
    assert!(!format!("{observed:?} {answer:?}").contains("canary"));
    let log = format!("{:?}", run(&mut driver, &["SLOWLOG", "GET", "1000"]).await);
    assert!(
        log.contains("eval") || log.contains("EVAL") || log.contains("sha1hex"),
        "{log}"
    );
    assert!(!log.contains(secret), "{log}");
    run(&mut driver, &["PING", "the-end"]).await;
    let mut lines = Vec::new();
    let mut commands = monitor.on_message::<String>();
    while let Some(line) = commands.next().await {
        if line.contains("the-end") {
            break;
        }
        lines.push(line);
    }
    assert!(lines.iter().any(|line| line.contains("sha1hex")));
    let messages = lines.iter().filter(|line| line.contains("canary")).count();
    assert_eq!(messages, 1, "only our own SET: {lines:#?}");
}

/// Takes the lock as Redisson does.
const TAKE: &str = "
if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
  redis.call('hincrby', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return -1
end
return redis.call('pttl', KEYS[1])";

async fn take(connection: &mut MultiplexedConnection, name: &str, owner: &str) -> bool {
    run(connection, &["EVAL", TAKE, "1", name, "600000", owner]).await == redis::Value::Int(-1)
}

#[tokio::test]
async fn a_redisson_waiter_gets_the_lock_at_once() {
    // The waiter behaves as Redisson's: it tries, subscribes, tries again, and then sleeps until a message arrives.
    // The TTL is ten minutes, acquired twice by the holder.
    let redis = start().await;
    let mut driver = driver(&redis).await;
    let backend = unlocker(&redis);
    assert!(take(&mut driver, "lock:r", A).await && take(&mut driver, "lock:r", A).await);
    let mut messages = listen(&redis, "redisson_lock__channel:{lock:r}").await;
    assert!(!take(&mut driver, "lock:r", B).await);
    let old = generation(&backend, &hash(), &"lock:r".into()).await;
    let release = || async {
        backend
            .release(&hash(), &"lock:r".into(), &old, &act())
            .await
            .unwrap()
    };
    assert_eq!(release().await, Release::Released);
    assert_eq!(message(&mut messages).await, "0");
    assert!(take(&mut driver, "lock:r", B).await);
    // The waiter holds it now; the old generation no longer exists.
    let answer = release().await;
    assert!(
        matches!(&answer, Release::HolderChanged { now } if now.owner_id.known().unwrap().as_str() == B),
        "{answer:?}"
    );
    assert!(exists(&mut driver, "lock:r").await);
}

#[tokio::test]
async fn fair_and_read_write_locks_wake_their_waiters() {
    // Queue of a fair lock; readers, who all go; a writer; and a name with braces of its own.
    let redis = start().await;
    let mut driver = driver(&redis).await;
    let backend = unlocker(&redis);
    take(&mut driver, "lock:fair", A).await;
    run(&mut driver, &["RPUSH", "redisson_lock_queue:{lock:fair}", B]).await;
    let mut messages = listen(&redis, &format!("redisson_lock__channel:{{lock:fair}}:{B}")).await;
    assert_eq!(
        unlock(&backend, &hash(), &"lock:fair".into()).await,
        Release::Released
    );
    assert_eq!(message(&mut messages).await, "0");

    run(&mut driver, &["HSET", "lock:rw", "mode", "read", A, "1", B, "2"]).await;
    let radius = backend.inspect(&hash(), &"lock:rw".into()).await.unwrap();
    let radius = radius.blast_radius.known().unwrap().clone();
    assert_eq!(radius.dies.len(), 1);
    assert!(radius.dies[0].kind == CasualtyKind::Lock && radius.dies[0].what.contains(B));
    let mut messages = listen(&redis, "redisson_rwlock:{lock:rw}").await;
    let old = generation(&backend, &hash(), &"lock:rw".into()).await;
    // One more reader, which the review did not include.
    let other = "485475da-9152-4c83-822a-67ee2f116a79:1";
    run(&mut driver, &["HSET", "lock:rw", other, "1"]).await;
    let answer = backend
        .release(&hash(), &"lock:rw".into(), &old, &act())
        .await
        .unwrap();
    assert!(matches!(answer, Release::HolderChanged { .. }), "{answer:?}");
    assert_eq!(
        unlock(&backend, &hash(), &"lock:rw".into()).await,
        Release::Released
    );
    assert_eq!(message(&mut messages).await, "0");

    let writer = format!("{A}:write");
    run(&mut driver, &["HSET", "lock:{w}", "mode", "write", &writer, "1"]).await;
    let mut messages = listen(&redis, "redisson_rwlock:lock:{w}").await;
    assert_eq!(
        unlock(&backend, &hash(), &"lock:{w}".into()).await,
        Release::Released
    );
    assert_eq!(message(&mut messages).await, "1");
}

/// The block of the guide that makes the unlocking account.
fn documented() -> Vec<String> {
    let block = DOCS
        .split("```")
        .find(|block| block.contains("ACL SETUSER leasehold-unlock"))
        .unwrap();
    block.split_whitespace().map(str::to_owned).collect()
}

#[tokio::test]
async fn the_documented_unlock_account_has_minimal_permissions() {
    // The block of the guide unchanged: a string, a fair lock and a read lock of Redisson, one of Symfony; then forbidden commands.
    let redis = start().await;
    let words = documented();
    create(&redis, &words).await;
    let password = words.iter().find_map(|word| word.strip_prefix('>')).unwrap();
    let url = redis.url_for(&words[2], password);
    let backend = Setup::new(&redis.url()).unlocking(&url).backend();
    let mut driver = driver(&redis).await;
    run(&mut driver, &["SET", "lock:a", "x", "PX", "60000"]).await;
    take(&mut driver, "lock:r", A).await;
    run(&mut driver, &["RPUSH", "redisson_lock_queue:{lock:r}", B]).await;
    run(&mut driver, &["HSET", "lock:rw", "mode", "read", A, "1"]).await;
    let token = format!("{}=", "A".repeat(43));
    run(&mut driver, &["EVAL", SYMFONY, "1", "lock:symfony", &token]).await;
    for (source, name) in [
        (key(), "lock:a"),
        (hash(), "lock:r"),
        (hash(), "lock:rw"),
        (Source::fixed("zset"), "lock:symfony"),
    ] {
        assert_eq!(
            unlock(&backend, &source, &name.into()).await,
            Release::Released,
            "{name}"
        );
    }
    let mut account = redis::Client::open(url)
        .unwrap()
        .get_multiplexed_async_connection()
        .await
        .unwrap();
    for words in [
        &["SET", "lock:a", "y"][..],
        &["PEXPIRE", "lock:a", "1"],
        &["DEL", "other"],
        &["GET", "other"],
        &["RPUSH", "redisson_lock_queue:{lock:r}", "x"],
        &["DEL", "redisson_lock_queue:{lock:r}"],
        &["PUBLISH", "elsewhere", "x"],
        &["FLUSHALL"],
        &["CONFIG", "SET", "maxmemory", "1"],
        &["SCAN", "0"],
        &["KEYS", "*"],
        &["ACL", "SETUSER", "x"],
    ] {
        let answer = redis::cmd(words[0])
            .arg(&words[1..])
            .query_async::<redis::Value>(&mut account)
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
async fn an_account_without_permission_refuses_with_a_remedy() {
    // EVAL, the reads before it, DEL inside of it and PUBLISH, one missing at a time.
    let missing = [
        "eval",
        "getrange",
        "del",
        "publish",
        "type",
        "hlen",
        "memory|usage",
    ];
    let redis = start_with(|options| {
        let user = |right: &&str| format!("no-{right} on >pw ~* &* +@all -{right}");
        options.acl_users = missing.iter().map(user).collect();
    })
    .await;
    let mut driver = driver(&redis).await;
    for right in missing {
        run(&mut driver, &["SET", "lock:a", "x"]).await;
        take(&mut driver, "lock:r", A).await;
        let url = redis.url_for(&format!("no-{right}"), "pw");
        let backend = Setup::new(&redis.url()).unlocking(&url).backend();
        let (source, name) = match right {
            "publish" | "hlen" | "memory|usage" => (hash(), "lock:r"),
            _ => (key(), "lock:a"),
        };
        let answer = unlock(&backend, &source, &name.into()).await;
        assert!(
            matches!(&answer, Release::Refused { remedy, .. } if remedy.contains("redis.md")),
            "{right}: {answer:?}"
        );
        assert!(exists(&mut driver, name).await, "{right}");
    }
}
