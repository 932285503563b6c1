//! Histories of real server processes under faults, and the checker that judges them.
//!
//! Eight client processes, each through a fault proxy of its own, acquire 20 locks of two servers on one Postgres, or of one on
//! SQLite: TTL 2 s, critical sections of 0 to 2 s. Every call and answer is recorded with the times of its beginning and end. The
//! seed is printed, and `LEASEHOLD_TEST_SEED` sets it.

mod checker;
mod client;
mod clock;
mod cluster;
mod disk;
mod fault;
mod fleet;
mod history;
mod kill_9;
mod members;
mod register;
mod rows;
mod run;
mod servers;
mod wall_clock;

use crate::support::rng::{self, Dice};
use cluster::StoreKind;
use fault::InjectedFault;
use run::RunCounts;

use crate::support::aside;

/// A few faults in one history each. The stopped clients show the lost updates of a register without token comparison.
async fn in_short(kind: StoreKind, servers: usize, faults: &[InjectedFault]) {
    let mut tally = RunCounts::default();
    Box::pin(tally.play((kind, servers), faults, rng::seed())).await;
    println!("{tally}");
    if faults.contains(&InjectedFault::ClientStop) {
        assert!(
            tally.lost_without_tokens > 0,
            "the negative control lost no update"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_on_sqlite_keep_every_invariant() {
    // A client stopped, the server killed, answers lost, the clock an hour ahead.
    let faults = [
        InjectedFault::ClientStop,
        InjectedFault::ServerKill,
        InjectedFault::ReplyLost,
        InjectedFault::ClockAhead,
    ];
    in_short(StoreKind::Sqlite, 1, &faults).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_on_two_postgres_servers_keep_every_invariant() {
    // Postgres killed, a client killed, a server stopped until its leases ran out, the clock an hour back.
    let faults = [
        InjectedFault::StoreKill,
        InjectedFault::ClientKill,
        InjectedFault::ServerStop,
        InjectedFault::ClockBack,
    ];
    in_short(StoreKind::Postgres, 2, &faults).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_on_two_etcd_servers_keep_every_invariant() {
    // The leader killed, a client killed, a member stopped, a server stopped until its leases ran out.
    let faults = [
        InjectedFault::StoreKill,
        InjectedFault::ClientKill,
        InjectedFault::StorePause,
        InjectedFault::ServerStop,
    ];
    in_short(StoreKind::Etcd, 2, &faults).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_on_four_etcd_servers_keep_every_invariant() {
    // The leader cut off from the other members, then all members from each other, a server killed, a clock an hour ahead.
    let faults = [
        InjectedFault::LeaderCutOff,
        InjectedFault::MembersCutOff,
        InjectedFault::ServerKill,
        InjectedFault::ClockAhead,
    ];
    in_short(StoreKind::Etcd, 4, &faults).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_on_two_shards_keep_every_invariant() {
    // One shard killed, then the other with the users, a client killed, a server stopped until its leases ran out.
    let faults = [
        InjectedFault::ShardKill,
        InjectedFault::ClientKill,
        InjectedFault::StoreKill,
        InjectedFault::ServerStop,
    ];
    in_short(StoreKind::PostgresShards, 2, &faults).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_grants_nothing_and_recovers() {
    // 503 while the disk is full, no lease that was not requested, served again without a restart once there is space;
    // on Postgres, which stops then, once it is back. Also detects a SQLite log that grows until it fills the disk
    // itself: freeing space elsewhere would then not restore service.
    in_short(StoreKind::SqliteOnSmallDisk, 1, &[InjectedFault::DiskFull; 3]).await;
    in_short(StoreKind::Postgres, 2, &[InjectedFault::DiskFull]).await;
}

/// Decks of faults, shuffled and dealt over histories of four: each fault six times.
async fn each_six_times(kinds: &[(StoreKind, usize)]) {
    let mut dice = Dice::new(rng::seed());
    let mut tally = RunCounts::default();
    for (kind, servers) in kinds {
        let deck = InjectedFault::deck(*kind);
        let mut faults: Vec<InjectedFault> = (0..6).flat_map(|_| deck).copied().collect();
        dice.shuffle(&mut faults);
        for faults in faults.chunks(4) {
            Box::pin(tally.play((*kind, *servers), faults, dice.number() >> 32)).await;
        }
    }
    println!("{tally}");
    assert!(tally.histories >= 20, "{}", tally.histories);
    assert!(tally.faults.values().all(|count| *count >= 6));
    assert!(
        tally.lost_without_tokens > 0,
        "the negative control lost no update"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a long fault run, for `make prove`"]
async fn histories_on_sqlite_with_each_fault_six_times() {
    // 22 histories: 13 faults on a disk with room, and the full disk.
    each_six_times(&[(StoreKind::Sqlite, 1), (StoreKind::SqliteOnSmallDisk, 1)]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a long fault run, for `make prove`"]
async fn histories_on_postgres_with_each_fault_six_times() {
    // 23 histories of two servers: 15 faults.
    each_six_times(&[(StoreKind::Postgres, 2)]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a long fault run, for `make prove`"]
async fn histories_on_etcd_with_each_fault_six_times() {
    // 27 histories of two servers on three members: 18 faults.
    each_six_times(&[(StoreKind::Etcd, 2)]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a long fault run, for `make prove`"]
async fn histories_of_four_servers_with_each_fault_six_times() {
    // 23 histories on Postgres, 27 on etcd.
    each_six_times(&[(StoreKind::Postgres, 4), (StoreKind::Etcd, 4)]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a long fault run, for `make prove`"]
async fn histories_on_shards_with_each_fault_six_times() {
    // 20 histories of two servers on two shards: 13 faults.
    each_six_times(&[(StoreKind::PostgresShards, 2)]).await;
}
