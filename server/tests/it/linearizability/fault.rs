//! The faults of a run, and the evidence that each one struck. Every fault is healed afterwards.

use std::time::Duration;

use rustix::process::Signal;
use tokio::time::sleep;

use super::cluster::{Cluster, StoreKind};
use super::{clock, disk, members};
use crate::support::proxy::Link;
use crate::support::rng::Dice;
use testkit::{Postgres, eventually, within};

const TTL_MS: i64 = 2_000;
/// TTL, lock delay (none), and a second.
const DEAD_FREE_MS: i64 = TTL_MS + 1_000;
/// Longer than a lease lives and than a client waits for an answer.
const LONG: Duration = Duration::from_millis(3_000);
const SHORT: Duration = Duration::from_millis(800);
const HOUR_S: i64 = 3_600;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum InjectedFault {
    ClientStop,
    ClientKill,
    ServerKill,
    ServerStop,
    ServerTerm,
    /// Postgres; of SQLite the store is the server.
    StoreKill,
    /// Postgres stopped; of SQLite: another writer holds the file.
    StorePause,
    /// The Postgres of the second shard killed: the first one serves.
    ShardKill,
    /// Requests arrive, answers do not.
    ReplyLost,
    Cut,
    HalfOpen,
    Slow,
    ClockAhead,
    ClockBack,
    DiskFull,
    NoFiles,
    /// Two of three members of etcd killed.
    MajorityKill,
    /// The member of etcd that leads cut off from the others.
    LeaderCutOff,
    /// Every member of etcd cut off from every other.
    MembersCutOff,
    /// Every member of etcd compacted and defragmented.
    Defragment,
}

impl InjectedFault {
    pub(super) const fn deck(kind: StoreKind) -> &'static [Self] {
        use InjectedFault::*;
        match kind {
            StoreKind::Sqlite => &[
                ClientStop, ClientKill, ServerKill, ServerStop, ServerTerm, StorePause, ReplyLost, Cut,
                HalfOpen, Slow, ClockAhead, ClockBack, NoFiles,
            ],
            StoreKind::SqliteOnSmallDisk => &[DiskFull],
            StoreKind::Postgres => &[
                ClientStop, ClientKill, ServerKill, ServerStop, ServerTerm, StoreKill, StorePause, ReplyLost,
                Cut, HalfOpen, Slow, ClockAhead, ClockBack, DiskFull, NoFiles,
            ],
            StoreKind::PostgresShards => &[
                ClientStop, ClientKill, ServerKill, ServerStop, ServerTerm, StoreKill, StorePause, ShardKill,
                ReplyLost, Cut, HalfOpen, Slow, NoFiles,
            ],
            StoreKind::Etcd => &[
                ClientStop,
                ClientKill,
                ServerKill,
                ServerStop,
                ServerTerm,
                StoreKill,
                StorePause,
                ReplyLost,
                Cut,
                HalfOpen,
                Slow,
                ClockAhead,
                ClockBack,
                NoFiles,
                MajorityKill,
                LeaderCutOff,
                MembersCutOff,
                Defragment,
            ],
        }
    }

    /// Injects the fault, verifies its effect, heals it. Returns the observed effect.
    pub(super) async fn strike(self, cluster: &mut Cluster, dice: &mut Dice) -> String {
        let unknown = cluster.unknown();
        let seen = match self {
            Self::ClientStop => return client_stop(cluster).await,
            Self::ClientKill => return client_kill(cluster).await,
            Self::ServerKill => server_end(cluster, dice, Signal::KILL).await,
            Self::ServerTerm => server_end(cluster, dice, Signal::TERM).await,
            Self::ServerStop => server_stop(cluster, dice).await,
            // Two members serve meanwhile: an answer may be late, and need not be.
            Self::StoreKill if cluster.etcd.is_some() => return members::kill_leader(cluster).await,
            Self::StorePause if cluster.etcd.is_some() => return members::pause(cluster, dice).await,
            Self::Defragment => return members::defragment(cluster).await,
            Self::LeaderCutOff => return members::cut_off_leader(cluster).await,
            Self::MembersCutOff => members::cut_off_all(cluster).await,
            Self::MajorityKill => members::kill_majority(cluster).await,
            Self::StoreKill => kill_postgres(cluster.postgres.as_ref().unwrap()).await,
            Self::ShardKill => shard_kill(cluster).await,
            Self::StorePause => store_pause(cluster).await,
            Self::ReplyLost => links(cluster, Link::OnlyToServer, LONG).await,
            Self::Cut => links(cluster, Link::Cut, SHORT).await,
            Self::HalfOpen => links(cluster, Link::Blackhole, LONG).await,
            Self::Slow => return slow(cluster).await,
            Self::ClockAhead => return clock_moves(cluster, HOUR_S).await,
            Self::ClockBack => return clock_moves(cluster, -HOUR_S).await,
            Self::DiskFull if cluster.postgres.is_some() => disk::fill_postgres(cluster).await,
            Self::DiskFull => disk::fill(cluster).await,
            Self::NoFiles => no_files(cluster, dice).await,
        };
        // Clients give up after their patience at the latest.
        eventually("a client saw it", || async { cluster.unknown() > unknown }).await;
        format!("{seen}; {} answers lost", cluster.unknown() - unknown)
    }
}

/// A holder is stopped between its read and its write until another client has written, then continues.
async fn client_stop(cluster: &mut Cluster) -> String {
    loop {
        let Some(section) = cluster.register.section_between_read_and_write() else {
            sleep(Duration::from_millis(1)).await;
            continue;
        };
        let Some(client) = cluster.clients.iter().find(|client| client.number == section.0) else {
            // Of a client that was killed.
            cluster.register.forget(&section);
            continue;
        };
        client.signal(Signal::STOP);
        // Requests sent before the stop arrive within this time.
        sleep(Duration::from_millis(50)).await;
        if !cluster.register.is_open(&section) {
            client.signal(Signal::CONT);
            continue;
        }
        let overtaken = || async { cluster.register.overtaken(&section) };
        within(
            Duration::from_secs(20),
            "another client wrote meanwhile",
            overtaken,
        )
        .await;
        client.signal(Signal::CONT);
        eventually("the stopped one wrote too", || async {
            !cluster.register.is_open(&section)
        })
        .await;
        return format!(
            "client {} overtaken on {} with token {}",
            section.0, section.1, section.2
        );
    }
}

/// A holder is killed; its lock has to be free in time, which the checker derives from the answers to other clients.
async fn client_kill(cluster: &mut Cluster) -> String {
    loop {
        let Some(section) = cluster.register.section_between_read_and_write() else {
            sleep(Duration::from_millis(1)).await;
            continue;
        };
        let Some(place) = cluster
            .clients
            .iter()
            .position(|client| client.number == section.0)
        else {
            cluster.register.forget(&section);
            continue;
        };
        let dead = cluster.replace(place, DEAD_FREE_MS).await;
        if !cluster.register.is_open(&section) {
            continue;
        }
        let overtaken = || async { cluster.register.overtaken(&section) };
        within(Duration::from_secs(20), "another client has its lock", overtaken).await;
        // The checker uses answers after the bound.
        sleep(Duration::from_millis(DEAD_FREE_MS.unsigned_abs() + 500)).await;
        return format!("client {dead} killed while it held {}", section.1);
    }
}

async fn server_end(cluster: &mut Cluster, dice: &mut Dice, signal: Signal) -> String {
    let place = dice.below(cluster.servers.len());
    let status = cluster.servers[place].end(signal).await;
    if signal == Signal::TERM {
        assert_eq!(status.code(), Some(0), "{}", cluster.servers[place].read_log());
    }
    sleep(SHORT).await;
    cluster.restart(place).await;
    format!("server {place} ended: {status}")
}

async fn server_stop(cluster: &mut Cluster, dice: &mut Dice) -> String {
    let place = dice.below(cluster.servers.len());
    cluster.servers[place].signal(Signal::STOP);
    sleep(LONG).await;
    let stat = format!("/proc/{}/stat", cluster.servers[place].pid().as_raw_nonzero());
    let stopped = std::fs::read_to_string(stat).unwrap().contains(") T ");
    cluster.servers[place].signal(Signal::CONT);
    assert!(stopped, "the server was not stopped");
    format!("server {place} stood still for {LONG:?}")
}

/// Meanwhile resources of the other shard are granted.
async fn shard_kill(cluster: &mut Cluster) -> String {
    let before = cluster.known();
    let seen = kill_postgres(cluster.second.as_ref().unwrap()).await;
    let meanwhile = cluster.known() - before;
    assert!(meanwhile > 0, "the other shard did not serve");
    format!("second shard: {seen}, {meanwhile} answers meanwhile")
}

async fn kill_postgres(postgres: &Postgres) -> String {
    postgres.kill().await.unwrap();
    sleep(SHORT).await;
    postgres.restart().await.unwrap();
    let log = std::fs::read_to_string(postgres.log()).unwrap();
    let seen = "was not properly shut down";
    assert!(log.contains(seen), "{log}");
    format!("Postgres: {seen}")
}

async fn store_pause(cluster: &mut Cluster) -> String {
    let Some(postgres) = cluster.postgres.as_ref() else {
        return sqlite_writer(cluster).await;
    };
    postgres.pause().await.unwrap();
    sleep(LONG).await;
    postgres.resume().await.unwrap();
    format!("Postgres stood still for {LONG:?}")
}

/// A foreign transaction holds the file's write lock.
async fn sqlite_writer(cluster: &Cluster) -> String {
    use sqlx::{Connection as _, Executor as _};
    let mut writer = sqlx::SqliteConnection::connect(&cluster.url).await.unwrap();
    let begin = "PRAGMA busy_timeout = 10000; BEGIN IMMEDIATE; UPDATE store_meta SET epoch = epoch";
    writer.execute(begin).await.unwrap();
    sleep(LONG).await;
    writer.execute("ROLLBACK").await.unwrap();
    writer.close().await.unwrap();
    format!("another writer held the file for {LONG:?}")
}

/// Half of the clients are cut off in some way.
async fn links(cluster: &Cluster, link: Link, time: Duration) -> String {
    let half = || cluster.proxies.iter().step_by(2);
    for proxy in half() {
        proxy.set(link).await;
    }
    sleep(time).await;
    for proxy in half() {
        proxy.set(Link::Pass).await;
    }
    let reset: u64 = half().map(|proxy| proxy.traffic().reset()).sum();
    format!("{link:?} for {time:?}, {reset} connections reset so far")
}

async fn slow(cluster: &Cluster) -> String {
    for proxy in &cluster.proxies {
        proxy.set(Link::Slow(Duration::from_millis(120))).await;
    }
    let before = cluster.known();
    sleep(LONG).await;
    let meanwhile = cluster.known() - before;
    for proxy in &cluster.proxies {
        proxy.set(Link::Pass).await;
    }
    assert!(meanwhile > 0, "slow is not dead");
    format!("{meanwhile} answers in {LONG:?} over slow links")
}

async fn clock_moves(cluster: &mut Cluster, seconds: i64) -> String {
    clock::move_to(cluster, seconds).await;
    let mut tries = 0;
    while (clock::offset_seconds(cluster).await - seconds).abs() > 60 {
        tries += 1;
        assert!(tries < 200, "the clock has not moved");
        sleep(Duration::from_millis(50)).await;
    }
    sleep(LONG).await;
    clock::move_to(cluster, 0).await;
    sleep(SHORT).await;
    format!("the clock stood {seconds} s off for {LONG:?}")
}

/// The server can open no more files or connections; all clients have to reconnect.
async fn no_files(cluster: &Cluster, dice: &mut Dice) -> String {
    let place = dice.below(cluster.servers.len());
    cluster.servers[place].limit_files(true);
    for proxy in &cluster.proxies {
        proxy.set(Link::Cut).await;
        proxy.set(Link::Pass).await;
    }
    sleep(LONG).await;
    cluster.servers[place].limit_files(false);
    format!("server {place} without free file descriptors for {LONG:?}")
}
