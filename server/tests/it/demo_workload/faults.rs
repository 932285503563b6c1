//! The workload survives faults of its servers, ends with its token, and uses little CPU time.

use std::fs;
use std::time::Duration;

use ::config::SystemConfig;
use ::demo::Demo;

use super::start;
use etcd_client::GetOptions;
use runtime::clock::Clock;
use secrecy::ExposeSecret;
use sqlx::{Connection, PgConnection};
use tokio_util::sync::CancellationToken;

use testkit::within;

use super::{MINUTE, backend};

/// Renewed or taken after the start of the database, and the sessions and the prepared transaction are there again.
const WORKS: &str = "
SELECT (SELECT count(*) >= 9 FROM pg_stat_activity WHERE usename = 'orders_app')
AND (SELECT count(*) = 1 FROM pg_prepared_xacts)
AND (SELECT count(*) >= 14 FROM distributed_locks
     WHERE updated_at > pg_postmaster_start_time() AND expires_at > clock_timestamp())";
const HAS_NO_SESSION: &str = "SELECT count(*) = 0 FROM pg_stat_activity WHERE usename = 'orders_app'";

async fn says(demo: &Demo, query: &'static str) -> bool {
    let SystemConfig::Postgres(config) = backend(demo, "orders-db") else {
        panic!("not Postgres")
    };
    let Ok(mut session) = PgConnection::connect(config.url.expose_secret()).await else {
        return false;
    };
    sqlx::query_scalar(query)
        .fetch_one(&mut session)
        .await
        .unwrap_or(false)
}

async fn keys_in_redis(demo: &Demo) -> Option<usize> {
    let SystemConfig::Redis(config) = backend(demo, "redis-cache") else {
        panic!("not Redis")
    };
    let client = redis::Client::open(config.urls[0].expose_secret()).unwrap();
    let mut server = client.get_multiplexed_async_connection().await.ok()?;
    let info: String = redis::cmd("INFO")
        .arg("keyspace")
        .query_async(&mut server)
        .await
        .ok()?;
    info.split("expires=").nth(1)?.split(',').next()?.parse().ok()
}

async fn keys_in_etcd(demo: &Demo) -> Option<usize> {
    let SystemConfig::Etcd(config) = backend(demo, "etcd-coord") else {
        panic!("not etcd")
    };
    let mut client = etcd_client::Client::connect(config.endpoints, None).await.ok()?;
    let keys = client
        .get("/locks/", Some(GetOptions::new().with_prefix()))
        .await
        .ok()?;
    Some(keys.kvs().iter().filter(|key| key.lease() != 0).count())
}

async fn all_at_work(demo: &Demo) -> bool {
    says(demo, WORKS).await
        && keys_in_redis(demo).await.is_some_and(|keys| keys >= 15)
        && keys_in_etcd(demo).await.is_some_and(|keys| keys >= 15)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_workload_survives_a_kill_of_every_server() {
    // kill -9 of all at once; their data are durable, and their clients heal by themselves.
    let demo = start(CancellationToken::new()).await;
    within(MINUTE, "the workload is at work", async || {
        all_at_work(&demo).await
    })
    .await;
    demo.crash().await.unwrap();
    within(MINUTE, "the workload is at work again", async || {
        all_at_work(&demo).await
    })
    .await;
    demo.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_demo_makes_no_further_changes() {
    // The servers live until `end`; the workload ends with the token, its waiting sessions too.
    let stop = CancellationToken::new();
    let demo = start(stop.clone()).await;
    within(MINUTE, "the workload is at work", async || {
        says(&demo, WORKS).await
    })
    .await;
    stop.cancel();
    within(MINUTE, "its sessions are gone", async || {
        says(&demo, HAS_NO_SESSION).await
    })
    .await;
    demo.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement of a minute, for `make prove`: it wants the machine to itself"]
async fn the_start_is_quick_and_the_load_is_small() {
    // Processor time of this process, and of everything that it started, over 40 s.
    let clock = Clock::start();
    let demo = start(CancellationToken::new()).await;
    let started_ms = clock.tick().0;
    within(MINUTE, "the workload is at work", async || {
        all_at_work(&demo).await
    })
    .await;
    // The start is over before CPU time is measured.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (before, began) = (Cpu::now(), clock.tick());
    // The span over which CPU time is measured.
    tokio::time::sleep(Duration::from_secs(40)).await;
    let (after, spent_ms) = (Cpu::now(), clock.tick().since(began));
    demo.end().await;
    let share = |from_ms: u64, to_ms: u64| (to_ms - from_ms) as f64 * 100.0 / spent_ms as f64;
    let (workload, servers) = (
        share(before.ours_ms, after.ours_ms),
        share(before.theirs_ms, after.theirs_ms),
    );
    println!("started in {started_ms} ms; of one core: workload {workload:.2} %, servers {servers:.2} %");
    assert!(started_ms < 3_000, "{started_ms} ms to start");
    // Seven backends, a JVM among their servers, and a debug build of the workload.
    assert!(
        workload < 4.0 && servers < 6.0,
        "workload {workload:.2} %, servers {servers:.2} %"
    );
}

/// Processor time spent so far.
struct Cpu {
    ours_ms: u64,
    /// Of the processes below ours that live.
    theirs_ms: u64,
}

impl Cpu {
    fn now() -> Self {
        let rows: Vec<_> = fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| row(&entry.unwrap().path()))
            .collect();
        let mut family = vec![std::process::id()];
        let mut next = 0;
        while let Some(&parent) = family.get(next) {
            family.extend(rows.iter().filter(|row| row.parent == parent).map(|row| row.pid));
            next += 1;
        }
        let spent_ms = |pid: &u32| {
            rows.iter()
                .find(|row| row.pid == *pid)
                .map_or(0, |row| row.spent_ms)
        };
        Self {
            ours_ms: spent_ms(&family[0]),
            theirs_ms: family[1..].iter().map(spent_ms).sum(),
        }
    }
}

struct Row {
    pid: u32,
    parent: u32,
    spent_ms: u64,
}

/// From `/proc/<pid>/stat` (proc(5)): utime and stime, own and of ended children, in ticks of 10 ms.
fn row(process: &std::path::Path) -> Option<Row> {
    let text = fs::read_to_string(process.join("stat")).ok()?;
    let (pid, rest) = text.split_once(' ')?;
    let fields: Vec<&str> = rest.rsplit_once(") ")?.1.split(' ').collect();
    let ticks: u64 = fields[11..15]
        .iter()
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    Some(Row {
        pid: pid.parse().ok()?,
        parent: fields[1].parse().ok()?,
        spent_ms: ticks * 10,
    })
}
