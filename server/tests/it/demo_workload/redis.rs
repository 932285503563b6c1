//! `redis-cache` and `cache-eu`: raw, JSON and hash locks, odd keys, and a server that stops answering.

use std::collections::BTreeSet;
use std::time::Duration;

use ::config::SystemConfig;
use ::demo::Demo;
use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands, AsyncConnectionConfig, Client, cmd};
use secrecy::ExposeSecret;

use testkit::within;

use super::backends::{Sample, comes_and_goes, falls_silent, renews};
use super::{MINUTE, backend};

async fn connect(demo: &Demo, name: &str) -> MultiplexedConnection {
    let SystemConfig::Redis(config) = backend(demo, name) else {
        panic!("not Redis")
    };
    let client = Client::open(config.urls[0].expose_secret()).unwrap();
    // No limit: one of the servers is going to be paused.
    let patient = AsyncConnectionConfig::new().set_response_timeout(None);
    client
        .get_multiplexed_async_connection_with_config(&patient)
        .await
        .unwrap()
}

pub(super) async fn shows_all(demo: &Demo) {
    let (cache, eu) = (
        connect(demo, "redis-cache").await,
        connect(demo, "cache-eu").await,
    );
    tokio::join!(
        renews("a JSON value", || sample(&cache, "lock:tenant_123:price-import")),
        renews("a raw value", || sample(&cache, "lock:rate-card:refresh")),
        renews("a Redisson hash", || sample(
            &cache,
            "lock:inventory:reserve:sku-10045"
        )),
        falls_silent("an export", || sample(&cache, "lock:tenant_311:export:csv")),
        comes_and_goes("a cart", || keys(&cache, "lock:cart:*")),
        runs_out(&cache),
        shapes(&cache),
        only_looks(&cache),
        stops_answering(&eu),
    );
    let locks = keys(&cache, "lock:*").await.len();
    assert!((20..=45).contains(&locks), "{locks} keys");
}

async fn keys(server: &MultiplexedConnection, pattern: &str) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    let mut server = server.clone();
    let mut found = server.scan_match::<_, String>(pattern).await.unwrap();
    while let Some(key) = found.next_item().await {
        keys.insert(key.unwrap());
    }
    keys
}

async fn sample(server: &MultiplexedConnection, key: &str) -> Option<Sample> {
    let mut server = server.clone();
    let kind: String = cmd("TYPE").arg(key).query_async(&mut server).await.unwrap();
    let identity: Option<String> = match kind.as_str() {
        "hash" => {
            let fields: Vec<(String, i64)> = server.hgetall(key).await.unwrap();
            fields.into_iter().next().map(|(field, _)| field)
        }
        "string" => text(&server, key).await,
        _ => None,
    };
    let remaining_ms: i64 = server.pttl(key).await.unwrap();
    identity.map(|identity| Sample {
        identity,
        remaining_ms,
    })
}

/// GETRANGE, because the console's account may run it.
async fn text(server: &MultiplexedConnection, key: &str) -> Option<String> {
    let mut read = cmd("GETRANGE");
    read.arg(key).arg(0).arg(-1);
    let value: String = read.query_async(&mut server.clone()).await.unwrap();
    Some(value).filter(|value| !value.is_empty())
}

async fn exists(server: &MultiplexedConnection, key: &str) -> bool {
    let left: i64 = server.clone().pttl(key).await.unwrap();
    left != -2
}

async fn runs_out(server: &MultiplexedConnection) {
    let keys = [
        "tenant_204:digest-mail",
        "tenant_408:digest-mail",
        "report:weekly:sales",
        "report:weekly:returns",
    ];
    within(
        MINUTE,
        "a key that is never renewed is near its end",
        async || {
            for key in keys {
                let left: i64 = server.clone().pttl(format!("lock:{key}")).await.unwrap();
                if (1..5_000).contains(&left) {
                    return true;
                }
            }
            false
        },
    )
    .await;
}

/// The formats of the values, and keys that are not valid locks.
async fn shapes(server: &MultiplexedConnection) {
    within(MINUTE, "odd keys, and values in their shapes", async || {
        let kind = async |key: &str| -> String {
            cmd("TYPE")
                .arg(key)
                .query_async(&mut server.clone())
                .await
                .unwrap()
        };
        let ttl: i64 = server
            .clone()
            .pttl("lock:warehouse/eu-west/reindex")
            .await
            .unwrap();
        let field: Vec<(String, i64)> = server
            .clone()
            .hgetall("lock:inventory:reserve:sku-20817")
            .await
            .unwrap();
        let json = text(server, "lock:tenant_204:price-import").await;
        let raw = text(server, "lock:tenant_204:cache-warm").await;
        ttl == -1
            && kind("lock:tenant_408:import-queue").await == "list"
            && kind("lock:tenant_408:import-events").await == "stream"
            && field.len() == 1
            && field[0].0.matches('-').count() == 4
            && field[0].0.contains(':')
            && json.is_some_and(|text| text.contains(r#""ownerId":"importer-1""#) && text.contains("leaseId"))
            && raw.is_some_and(|text| text.len() == 16)
    })
    .await;
}

/// The console's account cannot write, and can read only lock keys.
async fn only_looks(server: &MultiplexedConnection) {
    let denied = [
        cmd("DEL").arg("lock:x").to_owned(),
        cmd("SET").arg("lock:x").arg(1).to_owned(),
        cmd("GETRANGE").arg("secrets").arg(0).arg(-1).to_owned(),
        cmd("EVAL").arg("return 1").arg(0).to_owned(),
        cmd("FLUSHALL").to_owned(),
        cmd("CONFIG").arg("SET").arg("maxclients").arg(1).to_owned(),
    ];
    for command in denied {
        let answer: redis::RedisResult<redis::Value> = command.query_async(&mut server.clone()).await;
        assert_eq!(answer.unwrap_err().code(), Some("NOPERM"), "{command:?}");
    }
}

/// A real outage: no answer for ten seconds, then answers again, and the locks have survived.
async fn stops_answering(server: &MultiplexedConnection) {
    let key = "lock:checkout:eu:risk-model";
    let before = async || sample(server, key).await.map(|sample| sample.identity);
    within(MINUTE, "the lock is there", async || before().await.is_some()).await;
    let held = before().await;
    within(MINUTE, "the server is paused", async || {
        tokio::time::timeout(Duration::from_secs(10), exists(server, key))
            .await
            .is_err()
    })
    .await;
    within(MINUTE, "the server answers again", async || {
        exists(server, key).await
    })
    .await;
    assert_eq!(
        before().await,
        held,
        "the holder of {key} lost its lock in a pause"
    );
}
