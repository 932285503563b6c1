//! Locks that no client can acquire although they have no holder.

use domain::generation::Generation;
use domain::lock_detail::EventKind;
use domain::names::OwnerId;
use domain::reported::Reported;
use domain::tick::Tick;

use super::{Modelled, complete, inventory, now, observed};
use crate::{Inventory, InventoryWriter};
use backends::Batch;

/// As one scan finds `jobs`.
#[derive(Clone, Copy)]
enum Jobs {
    Held(&'static str),
    /// Its holder was lost.
    Delayed(&'static str),
    Free,
}

fn scan(feed: &InventoryWriter, at: i64, jobs: Jobs) {
    let read = |owner: &str, remaining_ms: Option<i64>, generation: Reported<Generation>| {
        let lock = Modelled {
            remaining_ms,
            waiters: None,
            acquired_ago_ms: None,
        };
        let mut lock = observed(b"jobs", "kv", &lock, at);
        lock.owner = Reported::Value(OwnerId::new(owner));
        lock.generation = generation;
        lock
    };
    let locks = match jobs {
        Jobs::Held(owner) => vec![read(owner, None, Reported::Value(Generation::new(owner)))],
        Jobs::Delayed(owner) => vec![read(
            owner,
            Some(9_000 - at),
            Reported::absent("no session holds the key"),
        )],
        Jobs::Free => Vec::new(),
    };
    feed.begin(now(at));
    feed.accept(Batch {
        sent_at: Tick(at),
        locks,
        gone: Vec::new(),
    });
    feed.end(complete(&["kv"]), now(at));
}

/// Kinds and owners of the changes.
fn changes(inventory: &Inventory) -> Vec<(EventKind, String)> {
    let changes = inventory.journal().take().changes.into_iter();
    changes
        .map(|change| (change.kind, change.owner.unwrap_or_default().to_string()))
        .collect()
}

#[test]
fn a_lock_delay_is_no_holding() {
    // A holder is lost; then the delay ends unused, or with the next holder.
    for next in [Jobs::Free, Jobs::Held("next")] {
        let (inventory, feeds) = inventory(&["one"]);
        inventory.journal().open();
        let scans = [
            Jobs::Free,
            Jobs::Held("lost"),
            Jobs::Delayed("lost"),
            Jobs::Delayed("lost"),
            next,
        ];
        for (at, jobs) in (0..).step_by(2_000).zip(scans) {
            scan(&feeds[0], at, jobs);
        }
        let mut expected = vec![
            (EventKind::Acquired, "lost".to_owned()),
            (EventKind::Released, "lost".to_owned()),
        ];
        if let Jobs::Held(owner) = next {
            expected.push((EventKind::Acquired, owner.to_owned()));
        }
        assert_eq!(changes(&inventory), expected);
    }
}
