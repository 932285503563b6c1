use std::sync::Arc;
use std::time::Duration;

use config::redis::{RedisConfig, RedisMode};
use config::tls::TlsConfig;
use config::{BackendConfig, SystemConfig};
use domain::names::BackendName;
use testkit::{RedisOptions, Throwaway, eventually};

use super::*;
use crate::redis::connection_config;

#[tokio::test]
async fn a_server_that_is_demoted_meanwhile_deletes_nothing() {
    // A replica that accepts writes: only the script itself can tell.
    let master = Throwaway::redis(RedisOptions::default()).await.unwrap();
    let options = RedisOptions {
        config: vec!["replica-read-only no".to_owned()],
        ..RedisOptions::default()
    };
    let demoted = Throwaway::redis(options).await.unwrap();
    let redis = RedisConfig::new(RedisMode::Standalone, vec![demoted.url().into()]);
    let config = BackendConfig {
        name: BackendName::parse("cache").unwrap(),
        poll_interval: Duration::from_secs(2),
        timeout: Duration::from_secs(20),
        scan_timeout: Duration::from_secs(20),
        tls: TlsConfig::default(),
        user: None,
        password: None,
        system: SystemConfig::Redis(redis.clone()),
    };
    let (target, _) = connection_config::nodes(&config, &redis).unwrap().remove(0);
    let link = Link::new(Arc::new(target));
    let connection = link.connection().await.unwrap();
    let mut follow = ::redis::cmd("REPLICAOF");
    follow.arg("127.0.0.1").arg(master.port());
    connection.query(&follow).await.unwrap();
    eventually("it follows", async || {
        let mut info = ::redis::cmd("INFO");
        info.arg("replication");
        let answer = connection.query(&info).await.unwrap();
        text(&answer).is_some_and(|text| text.contains("master_link_status:up"))
    })
    .await;
    let mut set = ::redis::cmd("SET");
    connection.query(set.arg("lock:a").arg("one")).await.unwrap();
    let expected = Generation::new(Fingerprint::from_value(b"one").generation("value:"));
    let attempt = delete_if_same(
        &connection,
        b"lock:a",
        &expected,
        (Guard::Master, RedisWake::None),
    )
    .await;
    assert!(
        matches!(attempt, Ok(Attempt::Acted(Acted::Refused { why, .. })) if why.contains("not a master any more"))
    );
    assert!(exists(&connection, b"lock:a").await.unwrap());
    let attempt = delete_if_same(&connection, b"lock:a", &expected, (Guard::None, RedisWake::None)).await;
    assert!(
        matches!(attempt, Ok(Attempt::Acted(Acted::Done))),
        "it would have"
    );
}

#[test]
fn each_release_has_its_own_salted_digest() {
    // SHA-1 of "abc" is in FIPS 180; a salt changes it.
    let plain = "a9993e364706816aba3e25717850c26c9cd0d89d";
    assert_eq!(salted_sha1("", b"abc"), plain);
    assert_eq!(salted_sha1("a", b"bc"), plain);
    assert_ne!(salted_sha1("0f", b"abc"), salted_sha1("f0", b"abc"));
}

#[test]
fn related_redisson_keys_have_redisson_names() {
    // With and without braces in the lock's own name.
    assert_eq!(
        related_key("redisson_lock__channel", b"lock:a"),
        b"redisson_lock__channel:{lock:a}"
    );
    assert_eq!(
        related_key("redisson_rwlock", b"lock:{a}"),
        b"redisson_rwlock:lock:{a}"
    );
}
