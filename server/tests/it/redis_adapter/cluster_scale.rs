//! Scale: a cluster of 1,000,000 keys costs as much as one server with the same keys.

use ::backends::Budget;
use ::backends::redis::RedisBackend;
use ::config::backend::SCAN_TIMEOUT_DEFAULT;
use ::config::redis::RedisMode;
use ::testkit::{Redis, RedisOptions, Throwaway};
use redis::Value;
use runtime::clock::Clock;

use super::{Setup, driver, run, start};
use crate::support::scale::{BYTES_PER_LOCK_MAX, ScanSize, heap_bytes, scan_size};

const KEYS: usize = 1_000_000;
/// Keys per script: a node that is busy for longer counts as lost in its cluster.
const KEYS_PER_SCRIPT: usize = 20_000;
/// Of a range of keys, a node takes those of its own slots.
const SEED: &str = "for number = ARGV[1], ARGV[2] do \
    local name = string.format('lock:tenant_%d:job:%07d', number % 1000, number) \
    local value = string.format('{\"ownerId\":\"worker-%d\",\"leaseId\":\"%032x\"}', number % 500, number) \
    redis.pcall('SET', name, value, 'PX', 3600000) end";
/// Commands of a scan besides those of its keys and of its pages: clock, mode, slots, and pages with fewer keys than asked for.
const OTHER_COMMANDS_MAX: usize = 1_000;

async fn seed(node: &Redis) {
    let mut connection = driver(node).await;
    for first in (0..KEYS).step_by(KEYS_PER_SCRIPT) {
        let last = (first + KEYS_PER_SCRIPT - 1).to_string();
        run(&mut connection, &["EVAL", SEED, "0", &first.to_string(), &last]).await;
    }
}

/// Commands that the nodes have processed so far.
async fn commands(nodes: &[Redis]) -> usize {
    let mut all = 0;
    for node in nodes {
        let Value::BulkString(info) = run(&mut driver(node).await, &["INFO", "stats"]).await else {
            panic!("INFO has no text");
        };
        let info = String::from_utf8(info).unwrap();
        let count = info
            .lines()
            .find_map(|line| line.strip_prefix("total_commands_processed:"));
        all += count.unwrap().trim().parse::<usize>().unwrap();
    }
    all
}

/// One scan, and the commands that it took.
async fn measured(backend: &RedisBackend, nodes: &[Redis]) -> (ScanSize, usize) {
    let budget = Budget {
        time_max: SCAN_TIMEOUT_DEFAULT,
    };
    let before = commands(nodes).await;
    let heap_before = heap_bytes();
    let mut size = scan_size(backend, &Clock::start(), budget).await;
    size.heap_bytes_max -= heap_before;
    let commands = commands(nodes).await - before;
    println!(
        "{} nodes: {commands} commands, {} bytes kept, {size:?}",
        nodes.len(),
        heap_bytes().saturating_sub(heap_before)
    );
    assert_eq!(size.locks, KEYS);
    // A scan of a table that grows may return a key twice; these do not.
    assert!(
        commands <= 2 * KEYS + KEYS / 1_000 * 2 + OTHER_COMMANDS_MAX,
        "{commands} commands"
    );
    assert!(size.heap_bytes_max <= BYTES_PER_LOCK_MAX * KEYS, "{size:?}");
    (size, commands)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: part of `make prove`"]
async fn a_cluster_of_a_million_keys_is_scanned_as_one_server() {
    // Both have the same keys, and are scanned in turn.
    let options = RedisOptions::default();
    let cluster = Box::pin(Throwaway::redis_cluster(3, options)).await.unwrap();
    let alone = [start().await];
    for node in cluster.nodes.iter().chain(&alone) {
        seed(node).await;
    }
    let of_cluster = Setup::mode(RedisMode::Cluster, cluster.urls()).backend();
    let of_one = Setup::new(&alone[0].url()).backend();
    let (mut fastest, mut fastest_alone) = (i64::MAX, i64::MAX);
    for _ in 0..3 {
        let (one, _) = measured(&of_one, &alone).await;
        let (all, _) = measured(&of_cluster, &cluster.nodes).await;
        fastest_alone = fastest_alone.min(one.took_ms);
        fastest = fastest.min(all.took_ms);
    }
    println!("cluster {fastest} ms, one server {fastest_alone} ms");
    assert!(
        fastest * 2 <= fastest_alone * 3,
        "cluster {fastest} ms, one server {fastest_alone} ms"
    );
}
