//! Histories of real server processes under faults, and the checker that judges them.
//!
//! Eight client processes, each through a fault proxy of its own, take 20 locks of two servers on one Postgres, or of one
//! on SQLite: TTL 2 s, critical sections of 0 to 2 s. Every call and answer is written down with the times of its
//! beginning and end. The seed is printed, and `LEASEHOLD_TEST_SEED` sets it.

mod checker;
mod client;
mod clock;
mod disk;
mod fault;
mod fleet;
mod history;
mod killed;
mod play;
mod register;
mod rows;
mod servers;
mod wall;
mod world;

use crate::support::dice::{self, Dice};
use fault::Fault;
use play::Tally;
use world::StoreKind;

/// A task of the test's own; the runtime ends it with the test.
#[expect(
    clippy::disallowed_methods,
    reason = "a helper of a test: its panic reaches the test through the handle"
)]
fn aside<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> tokio::task::JoinHandle<T> {
    tokio::spawn(work)
}

/// A few faults in one history each. That clients are stopped shows what a register without comparison loses.
async fn in_short(kind: StoreKind, faults: &[Fault]) {
    let mut tally = Tally::default();
    Box::pin(tally.play(kind, faults, dice::seed())).await;
    println!("{tally}");
    if faults.contains(&Fault::ClientStop) {
        assert!(
            tally.lost_without_tokens > 0,
            "the negative control lost no update"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_on_sqlite_keep_every_promise() {
    // A client stopped, the server killed, answers lost, the clock an hour ahead.
    let faults = [
        Fault::ClientStop,
        Fault::ServerKill,
        Fault::ReplyLost,
        Fault::ClockAhead,
    ];
    in_short(StoreKind::Sqlite, &faults).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_of_two_servers_on_postgres_keep_every_promise() {
    // Postgres killed, a client killed, a server stopped until its leases ran out, the clock an hour back.
    let faults = [
        Fault::StoreKill,
        Fault::ClientKill,
        Fault::ServerStop,
        Fault::ClockBack,
    ];
    in_short(StoreKind::Postgres, &faults).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_grants_nothing_and_heals_by_itself() {
    // 503 while there is no room, no lease that nobody asked for, served again without a restart once there is; on
    // Postgres, which gives up then, once that is back. Would also catch a log of SQLite that grows until it is itself what fills
    // the disk: then nothing that anybody removes brings the service back.
    in_short(StoreKind::SqliteOnSmallDisk, &[Fault::DiskFull; 3]).await;
    in_short(StoreKind::Postgres, &[Fault::DiskFull]).await;
}

/// Decks of faults, shuffled and dealt over histories of four: each fault six times.
async fn each_six_times(kinds: &[StoreKind]) {
    let mut dice = Dice::new(dice::seed());
    let mut tally = Tally::default();
    for kind in kinds {
        let mut faults: Vec<Fault> = (0..6).flat_map(|_| Fault::deck(*kind)).copied().collect();
        dice.shuffle(&mut faults);
        for faults in faults.chunks(4) {
            Box::pin(tally.play(*kind, faults, dice.number() >> 32)).await;
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
    each_six_times(&[StoreKind::Sqlite, StoreKind::SqliteOnSmallDisk]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a long fault run, for `make prove`"]
async fn histories_on_postgres_with_each_fault_six_times() {
    // 23 histories of two servers: 15 faults.
    each_six_times(&[StoreKind::Postgres]).await;
}
