//! A writer of a watched Redis stores values of hundreds of megabytes below a pattern, to end the console by its memory.

use ::testkit::{Redis, RedisOptions, Throwaway};
use redis::aio::MultiplexedConnection;
use serde_json::Value;

use super::memory::Memory;
use crate::process::running_server::Running;
use testkit::eventually;

const MEGABYTES: u64 = 1_000_000;
/// Peak memory that the console may add: less than one of the large values, and half of the many small ones.
const ADDED_BYTES_MAX: u64 = 90 * MEGABYTES;
const VALUE_BYTES: u64 = 400 * MEGABYTES;
const OWNER: &str = "285475da-9152-4c83-822a-67ee2f116a79:52";

async fn driver(redis: &Redis) -> MultiplexedConnection {
    let client = redis::Client::open(redis.url()).unwrap();
    // Redis needs a while for its own copies of these values.
    let settings = redis::AsyncConnectionConfig::new().set_response_timeout(None);
    client
        .get_multiplexed_async_connection_with_config(&settings)
        .await
        .unwrap()
}

async fn run(driver: &mut MultiplexedConnection, words: &[&str]) {
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]);
    command.exec_async(driver).await.unwrap();
}

async fn start() -> (Redis, MultiplexedConnection, Running) {
    let redis = Throwaway::redis(RedisOptions {
        notify_keyspace_events: Some("KEA".to_owned()),
        ..RedisOptions::default()
    })
    .await
    .unwrap();
    let mut driver = driver(&redis).await;
    run(&mut driver, &["SET", "lock:small", "worker", "PX", "600000"]).await;
    let toml = format!(
        "[[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"{}\"]\npatterns = [\"lock:*\"]\n\
         poll_interval = \"1s\"\ntimeout = \"20s\"\nscan_timeout = \"60s\"\n",
        redis.url()
    );
    let running = Running::start(&toml).await;
    shown(&running, "lock:small").await;
    (redis, driver, running)
}

async fn lock(running: &Running, name: &str) -> Value {
    running.json(&format!("/v1/inventory/cache/{name}")).await
}

/// Waits until the list has it.
async fn shown(running: &Running, name: &str) -> Value {
    let path = format!("/v1/inventory?backend=cache&prefix={name}");
    eventually(&format!("{name} is listed"), async || {
        !running.json(&path).await["locks"][0].is_null()
    })
    .await;
    running.json(&path).await["locks"][0].clone()
}

/// Waits for two more observations of a lock that stays.
async fn observed_again(running: &Running) {
    for _ in 0..2 {
        let before = shown(running, "lock:small").await["observedAt"].clone();
        eventually("a pass ends", async || {
            shown(running, "lock:small").await["observedAt"] != before
        })
        .await;
    }
}

fn says(lock: &Value, words: &str) -> bool {
    let reasons = lock["reasons"].as_array().into_iter().flatten();
    reasons
        .filter_map(|reason| reason["why"].as_str())
        .any(|why| why.contains(words))
}

/// A hash with one field of `bytes` bytes, without sending it.
async fn large_hash(driver: &mut MultiplexedConnection, key: &str, field: &str, bytes: u64) {
    run(driver, &["SETRANGE", "source", &(bytes - 1).to_string(), "x"]).await;
    let script = "redis.call('HSET', KEYS[1], ARGV[1], redis.call('GET', 'source'))";
    run(driver, &["EVAL", script, "1", key, field]).await;
    run(driver, &["DEL", "source"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_of_400_mb_cost_no_memory_and_show_their_size() {
    // A string, a hash with one field, a hash that resembles a lock, and 180 MB of values just
    // below the limit.
    let (_redis, mut driver, running) = start().await;
    let memory = Memory::read(running.pid());
    observed_again(&running).await;
    let before = memory.reset_peak();
    let last = (VALUE_BYTES - 1).to_string();
    run(&mut driver, &["SETRANGE", "lock:string", &last, "x"]).await;
    large_hash(&mut driver, "lock:hash", "field", VALUE_BYTES).await;
    large_hash(&mut driver, "lock:redisson", OWNER, 20 * MEGABYTES).await;
    let nearly = "v".repeat(60_000);
    for number in 0..3_000 {
        run(&mut driver, &["SET", &format!("lock:nearly:{number}"), &nearly]).await;
    }
    for (name, size) in [
        ("lock:string", "400 MB"),
        // As MEMORY USAGE reports it, including the server's overhead.
        ("lock:hash", "402 MB"),
        ("lock:redisson", "MB"),
    ] {
        // Stale for as long as these writes keep the next pass waiting.
        eventually(&format!("{name} is unknown, not stale"), async || {
            shown(&running, name).await["state"] == "unknown"
        })
        .await;
        let listed = shown(&running, name).await;
        assert!(says(&listed, size) && says(&listed, "not read"), "{listed}");
        let detail = lock(&running, name).await;
        assert!(says(&detail, size), "{detail}");
        let intent = serde_json::json!({
            "backend": "cache", "resource": name, "generation": "value:00", "reason": "stuck since the deployment"
        });
        let (status, answer) = running.post("/v1/unlocks", &intent).await;
        assert!((400..600).contains(&status), "{status} {answer}");
    }
    eventually("the values within the limit are read", async || {
        shown(&running, "lock:nearly:2999").await["state"] == "no_ttl"
    })
    .await;
    observed_again(&running).await;
    let added = memory.peak().saturating_sub(before);
    assert!(added < ADDED_BYTES_MAX, "{} MB more", added / MEGABYTES);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hash_that_grows_during_the_read_costs_no_memory() {
    // Swapped between its size being asked and its fields being read, again and again; and names of that size.
    let (_redis, mut driver, running) = start().await;
    let memory = Memory::read(running.pid());
    observed_again(&running).await;
    let before = memory.reset_peak();
    large_hash(&mut driver, "large", OWNER, 100 * MEGABYTES).await;
    run(&mut driver, &["HSET", "small", OWNER, "1"]).await;
    let name = format!("lock:{}", "n".repeat(100 * usize::try_from(MEGABYTES).unwrap()));
    run(&mut driver, &["SET", &name, "worker"]).await;
    drop(name);
    let swap = "for _, key in ipairs({'small', 'large'}) do\n\
                  if redis.call('EXISTS', key) == 0 then redis.call('RENAME', 'lock:swapped', key) end\n\
                end\n\
                redis.call('RENAME', ARGV[1], 'lock:swapped')";
    let mut names = ["small", "large"].into_iter().cycle();
    run(&mut driver, &["RENAME", "large", "lock:swapped"]).await;
    let passes = observed_again(&running);
    tokio::pin!(passes);
    loop {
        let words = ["EVAL", swap, "0", names.next().unwrap()];
        tokio::select! {
            () = &mut passes => break,
            () = run(&mut driver, &words) => {}
        }
    }
    eventually("the name that is not read is counted", async || {
        let backends = running.json("/v1/backends").await;
        backends.to_string().contains("1 keys have names of more than")
    })
    .await;
    let added = memory.peak().saturating_sub(before);
    assert!(added < ADDED_BYTES_MAX, "{} MB more", added / MEGABYTES);
}
