//! A master behind real Sentinels: fail-over, a demoted master, Sentinels that disagree or know nothing.

use std::time::Duration;

use ::backends::redis::RedisBackend;
use ::backends::{Backend, BackendError};
use ::config::redis::RedisMode;
use ::testkit::{Redis, RedisOptions, RedisSentinel, SentinelOptions, Throwaway, within};
use domain::force_release::Release;
use domain::names::Resource;

use super::{Setup, driver, key, observe, run, start, start_with, try_observe};
use crate::support::unlocking::{act, generation, unlock};

struct Monitored {
    master: Redis,
    replica: Redis,
    sentinels: Vec<RedisSentinel>,
}

impl Monitored {
    async fn start() -> Self {
        let quick = |options: &mut RedisOptions| {
            options.config = vec!["repl-diskless-sync-delay 0".to_owned()];
        };
        let master = start_with(quick).await;
        let replica = start_with(|options| {
            quick(options);
            options
                .config
                .push(format!("replicaof 127.0.0.1 {}", master.port()));
        })
        .await;
        let mut sentinels = Vec::new();
        for _ in 0..3 {
            let options = SentinelOptions {
                master_port: master.port(),
                master_name: "orders".to_owned(),
                quorum: 2,
                down_after: Duration::from_millis(500),
                config: Vec::new(),
            };
            sentinels.push(Throwaway::redis_sentinel(options).await.unwrap());
        }
        // They must know the replica and one another before they can fail over.
        for sentinel in &sentinels {
            within(Duration::from_secs(60), "the Sentinels know all", async || {
                let mut ask = redis::cmd("SENTINEL");
                ask.arg("MASTER").arg("orders");
                let client = redis::Client::open(sentinel.url()).unwrap();
                let mut connection = client.get_multiplexed_async_connection().await.unwrap();
                let facts: std::collections::HashMap<String, String> =
                    ask.query_async(&mut connection).await.unwrap();
                facts["num-slaves"] == "1" && facts["num-other-sentinels"] == "2"
            })
            .await;
        }
        Self {
            master,
            replica,
            sentinels,
        }
    }

    fn setup(&self) -> Setup {
        let urls = self.sentinels.iter().map(RedisSentinel::url);
        let mut setup = Setup::mode(RedisMode::Sentinel, urls).unlocking_all();
        setup.redis.master_name = Some("orders".to_owned());
        setup
    }
}

/// `None` while the server closes the connections of its clients, as it does when its role changes.
async fn role(redis: &Redis) -> Option<String> {
    let info: redis::RedisResult<String> = redis::cmd("INFO")
        .arg("replication")
        .query_async(&mut driver(redis).await)
        .await;
    let role = info
        .ok()?
        .lines()
        .find(|line| line.starts_with("role:"))?
        .to_owned();
    Some(role)
}

fn serves(backend: &RedisBackend, redis: &Redis) -> bool {
    backend
        .address()
        .contains(&format!("now 127.0.0.1:{}", redis.port()))
}

#[tokio::test]
async fn fail_over_is_followed_and_a_demoted_master_is_not_written() {
    // The master hangs; it comes back as a replica.
    let servers = Monitored::start().await;
    let backend = servers.setup().backend();
    let mut old = driver(&servers.master).await;
    run(&mut old, &["SET", "lock:a", "one", "PX", "3600000"]).await;
    run(&mut old, &["SET", "lock:b", "one", "PX", "3600000"]).await;
    run(&mut old, &["WAIT", "1", "20000"]).await;
    assert!(observe(&backend).await.1.has("lock:a"));
    assert!(serves(&backend, &servers.master));
    assert_eq!(
        unlock(&backend, &key(), &"lock:b".into()).await,
        Release::Released
    );
    servers.master.pause().await.unwrap();
    within(Duration::from_secs(60), "the new master is read", async || {
        try_observe(&backend)
            .await
            .is_ok_and(|(_, seen)| serves(&backend, &servers.replica) && seen.has("lock:a"))
    })
    .await;
    servers.master.resume().await.unwrap();
    let resource = Resource::from("lock:a");
    assert_eq!(unlock(&backend, &key(), &resource).await, Release::Released);
    assert_eq!(role(&servers.replica).await.as_deref(), Some("role:master"));
    assert!(!observe(&backend).await.1.has("lock:a"));
    within(
        Duration::from_secs(60),
        "the old master is a replica",
        async || role(&servers.master).await.as_deref() == Some("role:slave"),
    )
    .await;
    assert!(serves(&backend, &servers.replica));
}

#[tokio::test]
async fn a_minority_of_sentinels_releases_nothing() {
    // One of three still answers: it may be the one that is cut off.
    let servers = Monitored::start().await;
    let backend = servers.setup().backend();
    let mut driver = driver(&servers.master).await;
    run(&mut driver, &["SET", "lock:a", "one"]).await;
    let resource = Resource::from("lock:a");
    let seen = generation(&backend, &key(), &resource).await;
    for sentinel in &servers.sentinels[..2] {
        sentinel.kill().await.unwrap();
    }
    let (pass, read) = observe(&backend).await;
    assert!(read.has("lock:a"), "it is still read");
    assert!(
        pass.sources.iter().all(|part| !part.coverage.is_complete()) && read.parts.is_empty(),
        "a lock that another master has is not gone: {pass:?}"
    );
    let fault = pass.sources[0].fault.as_deref().unwrap_or_default();
    for sentinel in &servers.sentinels[..2] {
        let address = format!("127.0.0.1:{}", sentinel.port());
        assert!(fault.contains(&address), "{address} in {fault}");
    }
    assert!(fault.contains("`urls`"), "{fault}");
    let error = backend.inspect(&key(), &"lock:missing".into()).await.unwrap_err();
    assert!(
        matches!(&error, BackendError::Unavailable { detail, .. } if detail.contains("no majority")),
        "another master may have the lock: {error:?}"
    );
    let refused = backend.release(&key(), &resource, &seen, &act()).await.unwrap();
    assert!(
        matches!(&refused, Release::Refused { why, .. } if why.contains("1 of 3 Sentinels") && why.contains("no majority")),
        "{refused:?}"
    );
    assert_eq!(
        run(&mut driver, &["EXISTS", "lock:a"]).await,
        redis::Value::Int(1)
    );
}

#[tokio::test]
async fn a_wrong_name_and_a_data_node_among_the_urls_are_named() {
    let data = start().await;
    let options = SentinelOptions {
        master_port: data.port(),
        master_name: "orders".to_owned(),
        quorum: 1,
        down_after: Duration::from_secs(60),
        config: vec![
            "user watcher on >secret +@all".to_owned(),
            "user default off".to_owned(),
        ],
    };
    let sentinel = Throwaway::redis_sentinel(options).await.unwrap();
    let setup = |url: String, name: &str| {
        let mut setup = Setup::mode(RedisMode::Sentinel, [url]);
        setup.redis.master_name = Some(name.to_owned());
        setup
    };
    let mut named = setup(sentinel.url(), "orders");
    assert!(
        matches!(
            try_observe(&named.backend()).await.map(drop),
            Err(BackendError::Denied { remedy, .. }) if remedy.contains("`sentinel_user`")
        ),
        "the Sentinel has an account of its own"
    );
    named.redis.sentinel_user = Some("watcher".to_owned());
    named.redis.sentinel_password = Some("secret".into());
    observe(&named.backend()).await;
    named.redis.master_name = Some("order".to_owned());
    let error = try_observe(&named.backend()).await.map(drop).unwrap_err();
    assert!(
        matches!(&error, BackendError::Misconfigured { detail, remedy }
            if detail.contains("\"order\"") && remedy.contains("`master_name`")),
        "{error:?}"
    );
    let error = try_observe(&setup(data.url(), "orders").backend())
        .await
        .map(drop)
        .unwrap_err();
    assert!(
        matches!(&error, BackendError::Misconfigured { detail, .. } if detail.contains("is not a Sentinel")),
        "{error:?}"
    );
}
