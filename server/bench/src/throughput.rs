//! Durable acquire and release pairs per second: our service over HTTP on both stores, and alternatives, with the
//! same number of clients and the same durability, one after the other in one run.

mod baseline;
mod etcd;
mod lease_service;
mod redis;
mod report;
mod table;
mod yardstick_hash;
mod zookeeper;

use std::time::Duration;

pub(crate) use self::etcd::run_on_etcd;
use self::lease_service::Calls;
pub(crate) use self::lease_service::{run_keyed, run_keyed_on};
pub(crate) use self::report::figures;
pub(crate) use self::yardstick_hash::yardstick_hash;
use super::disk::{SyncTimes, sync_times};
use super::error::BenchError;
use super::load::{LoadSpan, Pace};
use super::test_server::Served;
use testkit::{
    EtcdOptions, PostgresOptions, RedisOptions, StartError, Throwaway, ThrowawayFolder, ZookeeperOptions,
};

/// Per store and peer, in each round.
pub(crate) const SPAN: LoadSpan = LoadSpan {
    warm_up: Duration::from_secs(1),
    time: Duration::from_secs(4),
};
/// Rounds; the median counts, because the speed of a machine varies over time.
pub(crate) const ROUNDS: u8 = 7;
pub(crate) const ROUNDS_MAX: i64 = 99;

/// Results of one round.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BenchRound {
    pub sync: SyncTimes,
    pub sqlite: Pace,
    pub sqlite_keyless: Pace,
    pub sqlite_batches: Pace,
    /// The minimal implementation on this machine.
    pub yardstick: Pace,
    pub postgres: Pace,
    /// SQL sent directly by the clients to a Postgres of their own.
    pub table: Pace,
    pub peers: Vec<Peer>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Peer {
    pub name: &'static str,
    /// Whether our service should be faster.
    pub is_to_beat: bool,
    pub pace: Pace,
}

/// Threads and processes with less than this per pair are not shown.
pub(super) const THREAD_US_SHOWN: f64 = 0.5;

pub(crate) type Say<'a> = &'a (dyn Fn(&str) + Sync);

/// # Errors
/// A server does not start, or a client fails.
pub(crate) async fn measure(span: LoadSpan, rounds: u8, say: Say<'_>) -> Result<Vec<BenchRound>, BenchError> {
    let mut all = Vec::new();
    for number in 1..=rounds {
        say(&format!("round {number} of {rounds}"));
        all.push(Box::pin(measure_round(span, say)).await?);
    }
    Ok(all)
}

async fn measure_round(span: LoadSpan, say: Say<'_>) -> Result<BenchRound, BenchError> {
    let sync = {
        let folder = ThrowawayFolder::create("bench").map_err(BenchError::io("folder"))?;
        sync_times(folder.path()).map_err(BenchError::io("sync"))?
    };
    say("acquire and release over HTTP on SQLite");
    let sqlite = report(say, on_sqlite(Calls::Keyed, span).await?);
    say("the same without idempotency keys");
    let sqlite_keyless = report(say, on_sqlite(Calls::Keyless, span).await?);
    say("the same in batch calls of 64 locks");
    let (served, _folder) = Served::on_sqlite().await?;
    let sqlite_batches = report(say, lease_service::measure_batches(served, span).await?);
    say("the yardstick: axum, a queue and one SQLite writer, nothing else");
    let yardstick = report(say, baseline::measure(span).await?);
    say("acquire and release over HTTP on Postgres");
    let postgres = report(say, on_postgres(span).await?);
    say("the peer: the common lease SQL, sent to Postgres directly");
    let server = Throwaway::postgres(PostgresOptions::default()).await?;
    let table = report(say, Box::pin(table::measure(&server, span)).await?);
    drop(server);
    Ok(BenchRound {
        sync,
        sqlite,
        sqlite_keyless,
        sqlite_batches,
        yardstick,
        postgres,
        table,
        peers: Box::pin(peers(span, say)).await?,
    })
}

async fn peers(span: LoadSpan, say: Say<'_>) -> Result<Vec<Peer>, BenchError> {
    let mut peers = Vec::new();
    say("the peer: etcd");
    let server = Throwaway::etcd(EtcdOptions::default()).await?;
    peers.push(Peer {
        name: "etcd",
        is_to_beat: true,
        pace: report(say, Box::pin(run_on_etcd(&[server.endpoint()], span)).await?),
    });
    drop(server);
    say("the peer: ZooKeeper");
    match Throwaway::zookeeper(ZookeeperOptions::default()).await {
        Ok(server) => peers.push(Peer {
            name: "ZooKeeper",
            is_to_beat: true,
            pace: report(say, Box::pin(zookeeper::measure(&server, span)).await?),
        }),
        // Only this one is optional: `make bench` installs the others.
        Err(StartError::Missing(missing)) => say(&format!("left out: {missing}")),
        Err(error) => return Err(error.into()),
    }
    say("the peer: Redis with appendfsync always");
    let durable = RedisOptions {
        append_only: true,
        config: vec!["appendfsync always".to_owned()],
        ..RedisOptions::default()
    };
    let server = Throwaway::redis(durable).await?;
    peers.push(Peer {
        name: "Redis with appendfsync always",
        is_to_beat: false,
        pace: report(say, redis::measure(&server, span).await?),
    });
    Ok(peers)
}

/// Reports progress, because the complete table takes a while.
pub(crate) fn report(say: Say<'_>, pace: Pace) -> Pace {
    let Pace {
        pairs_per_s,
        p50_ms,
        p99_ms,
        cpu_us,
        threads,
    } = &pace;
    say(&format!(
        "  {pairs_per_s:.0} pairs/s, p50 {p50_ms:.1} ms, p99 {p99_ms:.1} ms, {cpu_us:.0} us of CPU a pair"
    ));
    let shown = threads.iter().filter(|cpu| cpu.sum_us() >= THREAD_US_SHOWN);
    let shown: Vec<String> = shown
        .map(|cpu| format!("{} {:.1} + {:.1}", cpu.name, cpu.user_us, cpu.system_us))
        .collect();
    say(&format!("    user + system us of a pair: {}", shown.join(", ")));
    pace
}

async fn on_sqlite(calls: Calls, span: LoadSpan) -> Result<Pace, BenchError> {
    let (served, _folder) = Served::on_sqlite().await?;
    lease_service::measure(served, calls, span).await
}

async fn on_postgres(span: LoadSpan) -> Result<Pace, BenchError> {
    let server = Throwaway::postgres(PostgresOptions::default()).await?;
    let served = Served::start(server.superuser_url().into(), Vec::new()).await?;
    lease_service::measure(served, Calls::Keyed, span).await
}
