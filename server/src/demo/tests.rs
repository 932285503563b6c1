//! The workload and its servers' faults, which only this crate can inject.

use std::time::Duration;

use sqlx::{Connection, PgConnection};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{Demo, names, postgres};

const PATIENCE: Duration = Duration::from_secs(60);

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let held = timeout(PATIENCE, async {
        while !holds().await {
            sleep(Duration::from_millis(100)).await;
        }
    });
    held.await
        .unwrap_or_else(|_| panic!("not within {PATIENCE:?}: {what}"));
}

/// Sessions of the workload that came since the database was started, renewals after that, and what is prepared.
async fn database_works(demo: &Demo) -> bool {
    let orders = demo.servers.orders.as_ref().unwrap();
    let Ok(mut session) = PgConnection::connect(&orders.server.superuser_url_to(postgres::DATABASE)).await
    else {
        return false;
    };
    sqlx::query_scalar(
        "SELECT (SELECT count(*) >= 9 FROM pg_stat_activity WHERE usename = 'orders_app')
         AND (SELECT count(*) = 1 FROM pg_prepared_xacts)
         AND (SELECT count(*) FROM distributed_locks
              WHERE updated_at > pg_postmaster_start_time() AND expires_at > clock_timestamp()) >= $1",
    )
    .bind(i64::try_from(names::TABLE.steady.len()).unwrap())
    .fetch_one(&mut session)
    .await
    .unwrap_or(false)
}

async fn keys_with_ttl(demo: &Demo) -> Option<usize> {
    let cache = demo.servers.cache.as_ref()?;
    let client = ::redis::Client::open(cache.server.url()).ok()?;
    let mut server = client.get_multiplexed_async_connection().await.ok()?;
    let info: String = ::redis::cmd("INFO")
        .arg("keyspace")
        .query_async(&mut server)
        .await
        .ok()?;
    info.split("expires=").nth(1)?.split(',').next()?.parse().ok()
}

async fn keys_on_leases(demo: &Demo) -> Option<usize> {
    let coord = demo.servers.coord.as_ref()?;
    let mut client = etcd_client::Client::connect([coord.endpoint()], None)
        .await
        .ok()?;
    let prefix = etcd_client::GetOptions::new().with_prefix();
    let keys = client
        .get(super::etcd::PREFIX, Some(prefix))
        .await
        .ok()?
        .take_kvs();
    Some(keys.iter().filter(|key| key.lease() != 0).count())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_workload_goes_on_after_every_server_was_killed() {
    // kill -9 of Postgres, Redis and etcd at once; their data are durable, so leases go on where they have not run out.
    let demo = super::start(CancellationToken::new()).await.unwrap();
    let works = async || {
        database_works(&demo).await
            && keys_with_ttl(&demo).await.is_some_and(|keys| keys >= 15)
            && keys_on_leases(&demo).await.is_some_and(|keys| keys >= 15)
    };
    until("the workload is at work", works).await;
    let servers = &demo.servers;
    let (orders, cache, coord) = (
        &servers.orders.as_ref().unwrap().server,
        &servers.cache.as_ref().unwrap().server,
        servers.coord.as_ref(),
    );
    let coord = coord.unwrap();
    tokio::try_join!(orders.kill(), cache.kill(), coord.kill()).unwrap();
    tokio::try_join!(orders.restart(), cache.restart(), coord.restart()).unwrap();
    until("the workload is at work again", works).await;
    demo.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_demo_changes_nothing_any_more() {
    // The servers live until `end`; the workload ends with the token.
    let stop = CancellationToken::new();
    let demo = super::start(stop.clone()).await.unwrap();
    until("the workload is at work", async || database_works(&demo).await).await;
    stop.cancel();
    until("its sessions are gone", async || {
        let orders = demo.servers.orders.as_ref().unwrap();
        let url = orders.server.superuser_url();
        let mut session = PgConnection::connect(&url).await.unwrap();
        sqlx::query_scalar("SELECT count(*) = 0 FROM pg_stat_activity WHERE usename = 'orders_app'")
            .fetch_one(&mut session)
            .await
            .unwrap()
    })
    .await;
    demo.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement: run it alone, with --no-capture"]
async fn how_long_the_start_takes_and_what_the_workload_costs() {
    // Processor time of this process and of everything it started, over 40 s.
    let clock = crate::clock::Clock::start();
    let demo = super::start(CancellationToken::new()).await.unwrap();
    println!("started in {} ms", clock.tick().0);
    sleep(Duration::from_secs(10)).await;
    let (before, began) = (cpu_ms(), clock.tick());
    sleep(Duration::from_secs(40)).await;
    let (after, spent) = (cpu_ms(), clock.tick().since(began));
    println!(
        "workload: {:.2} % of one core",
        (after.0 - before.0) * 100.0 / spent as f64
    );
    println!(
        "servers: {:.2} % of one core",
        (after.1 - before.1) * 100.0 / spent as f64
    );
    println!(
        "keys {:?}, leased {:?}",
        keys_with_ttl(&demo).await,
        keys_on_leases(&demo).await
    );
    demo.end().await;
}

/// Ours, and that of all processes below us that still live.
fn cpu_ms() -> (f64, f64) {
    let me = std::process::id();
    let mut rows = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
        let Ok(text) = std::fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        let Some((pid, rest)) = text.split_once(' ') else {
            continue;
        };
        let fields: Vec<&str> = rest.rsplit_once(") ").unwrap().1.split(' ').collect();
        // utime, stime, and those of children that have ended; in ticks of 10 ms.
        let ticks: f64 = fields[11..15]
            .iter()
            .map(|field| field.parse::<f64>().unwrap())
            .sum();
        rows.push((
            pid.parse::<u32>().unwrap(),
            fields[1].parse::<u32>().unwrap(),
            ticks * 10.0,
        ));
    }
    let mut family = vec![me];
    let mut next = 0;
    while let Some(&parent) = family.get(next) {
        family.extend(rows.iter().filter(|row| row.1 == parent).map(|row| row.0));
        next += 1;
    }
    let of = |pid: u32| rows.iter().find(|row| row.0 == pid).map_or(0.0, |row| row.2);
    (of(me), family[1..].iter().map(|&pid| of(pid)).sum())
}
