//! Shared locks: the hold of each owner.

use domain::generation::Generation;
use domain::lock_detail::EventKind;
use domain::names::{OwnerId, Resource, Source};
use domain::observation::{InLine, ObservedLock, Sharer};
use domain::reported::Reported;
use domain::tick::Tick;

use super::{Modelled, complete, inventory, name, now, observed};
use crate::{ForceRelease, Inventory, InventoryWriter, LookUp};
use backends::Batch;

use EventKind::{Acquired, FewerWaiting, GrantedAfterWait, Released, ShareAcquired, ShareReleased, Waiting};

/// One scan that finds `jobs` with these owners, in the order of the backend, and waiters; without an owner it is free.
fn scan(feed: &InventoryWriter, at: i64, owners: &[&str], waiters: &[&str]) {
    feed.begin(now(at));
    feed.accept(Batch {
        sent_at: Tick(at),
        locks: (!owners.is_empty())
            .then(|| jobs(owners, waiters, at))
            .into_iter()
            .collect(),
        gone: Vec::new(),
    });
    feed.end(complete(&["key"]), now(at));
}

fn jobs(owners: &[&str], waiters: &[&str], at: i64) -> ObservedLock {
    let model = Modelled {
        remaining_ms: None,
        waiters: u32::try_from(waiters.len()).ok(),
        acquired_ago_ms: None,
    };
    let mut lock = observed(b"jobs", "key", &model, at);
    lock.owner = Reported::Value(OwnerId::new(owners[0]));
    lock.owner_count = u32::try_from(owners.len()).unwrap();
    lock.generation = Reported::Value(Generation::new(owners.join("+")));
    let sharers = owners.iter().map(|owner| Sharer {
        generation: Generation::new(*owner),
        owner: Some(OwnerId::new(*owner)),
        token: None,
    });
    lock.sharers = sharers.filter(|_| owners.len() > 1).collect();
    let queued = waiters.iter().map(|waiter| InLine {
        generation: Generation::new(*waiter),
        waited_ms: None,
        identity: None,
    });
    lock.line = queued.collect();
    lock
}

type Change = (EventKind, String, Option<i64>);

/// Kinds, owners and hold times or waits of the changes since the last call.
fn changes(inventory: &Inventory) -> Vec<Change> {
    let changes = inventory.journal().take().changes;
    let read = changes.into_iter().map(|change| {
        let owner = change.owner.unwrap_or_default().to_string();
        (change.kind, owner, change.held_ms.or(change.waited_ms))
    });
    read.collect()
}

fn change(kind: EventKind, owner: &str, ms: Option<i64>) -> Change {
    (kind, owner.to_owned(), ms)
}

#[test]
fn owners_that_join_and_leave_end_no_other_hold() {
    // b joins a and is listed first; a leaves, c joins, b leaves, and then c.
    let (inventory, feeds) = inventory(&["one"]);
    inventory.journal().open();
    let scan = |at, owners: &[&str]| scan(&feeds[0], at, owners, &[]);
    scan(0, &[]);
    scan(1_000, &["a"]);
    scan(2_000, &["b", "a"]);
    let expected = [change(Acquired, "a", None), change(ShareAcquired, "b", None)];
    assert_eq!(changes(&inventory), expected);
    let LookUp::Found(lock, _) = inventory.find_lock(&name("one"), None, "jobs", now(2_000)) else {
        panic!("not found");
    };
    assert_eq!(lock.owner_id, Reported::Value(OwnerId::new("a")));
    assert_eq!((lock.owner_count, lock.held_at_least_ms), (2, 1_000));
    scan(4_000, &["b"]);
    scan(5_000, &["c", "b"]);
    scan(6_000, &["c"]);
    scan(7_000, &[]);
    let expected = [
        change(ShareReleased, "a", Some(3_000)),
        change(ShareAcquired, "c", None),
        change(ShareReleased, "b", Some(4_000)),
        change(Released, "c", Some(2_000)),
    ];
    assert_eq!(changes(&inventory), expected);
}

#[test]
fn the_next_recorded_owner_has_held_it_longest() {
    // c joins last and is listed first; then a leaves.
    let (inventory, feeds) = inventory(&["one"]);
    let scan = |at, owners: &[&str]| scan(&feeds[0], at, owners, &[]);
    scan(1_000, &["a"]);
    scan(2_000, &["a", "b"]);
    scan(3_000, &["c", "b", "a"]);
    scan(4_000, &["c", "b"]);
    let LookUp::Found(lock, _) = inventory.find_lock(&name("one"), None, "jobs", now(4_000)) else {
        panic!("not found");
    };
    assert_eq!(lock.owner_id, Reported::Value(OwnerId::new("b")));
    assert_eq!(lock.held_at_least_ms, 2_000);
}

#[test]
fn other_sharers_are_other_holdings() {
    // Two owners, then two others, then none: each time the end of the lock is its last end.
    let (inventory, feeds) = inventory(&["one"]);
    inventory.journal().open();
    let scan = |at, owners: &[&str]| scan(&feeds[0], at, owners, &[]);
    scan(0, &[]);
    scan(1_000, &["a", "b"]);
    scan(3_000, &["c", "d"]);
    scan(5_000, &[]);
    let expected = [
        change(Acquired, "a", None),
        change(ShareAcquired, "b", None),
        change(ShareReleased, "b", Some(2_000)),
        change(Released, "a", Some(2_000)),
        change(Acquired, "c", None),
        change(ShareAcquired, "d", None),
        change(ShareReleased, "d", Some(2_000)),
        change(Released, "c", Some(2_000)),
    ];
    assert_eq!(changes(&inventory), expected);
}

#[test]
fn a_waiter_that_joins_has_its_wait() {
    // It waits behind a for two seconds; a leaves later, and another waiter gives up.
    let (inventory, feeds) = inventory(&["one"]);
    inventory.journal().open();
    scan(&feeds[0], 0, &[], &[]);
    scan(&feeds[0], 1_000, &["a"], &[]);
    scan(&feeds[0], 2_000, &["a"], &["b", "w"]);
    scan(&feeds[0], 4_000, &["a", "b"], &["w"]);
    scan(&feeds[0], 5_000, &["b"], &[]);
    let expected = [
        change(Acquired, "a", None),
        change(Waiting, "a", None),
        change(ShareAcquired, "b", None),
        change(GrantedAfterWait, "b", Some(2_000)),
        change(ShareReleased, "a", Some(4_000)),
        change(FewerWaiting, "b", None),
    ];
    assert_eq!(changes(&inventory), expected);
}

/// Records a forced unlock of a and b.
fn unlock(inventory: &Inventory, at: i64) {
    let release = ForceRelease {
        source: Source::parse("key").unwrap(),
        resource: Resource::from("jobs"),
        generation: Generation::new("a+b"),
        at: now(at).wall,
    };
    inventory.record_unlocked(&name("one"), release, now(at).tick);
}

#[test]
fn a_reading_sent_before_the_unlock_is_not_its_result() {
    // c joined before the forced unlock, and the reading that shows it arrives after the unlock.
    let (inventory, feeds) = inventory(&["one"]);
    inventory.journal().open();
    let scan = |at, owners: &[&str]| scan(&feeds[0], at, owners, &[]);
    scan(0, &[]);
    scan(1_000, &["a", "b"]);
    unlock(&inventory, 2_000);
    scan(1_900, &["a", "b", "c"]);
    changes(&inventory);
    scan(3_000, &[]);
    let ended = changes(&inventory);
    assert!(
        ended.iter().any(|(kind, ..)| *kind == EventKind::Revoked),
        "{ended:?}"
    );
}

#[test]
fn owners_that_join_before_an_unlock_are_not_revoked() {
    // The reading that shows c arrives after the unlock and was sent before its answer; the next one is the result of the unlock.
    let (inventory, feeds) = inventory(&["one"]);
    inventory.journal().open();
    let scan = |at, owners: &[&str]| scan(&feeds[0], at, owners, &[]);
    scan(0, &[]);
    scan(1_000, &["a", "b"]);
    unlock(&inventory, 2_000);
    scan(1_900, &["b", "c"]);
    scan(3_000, &["b", "c"]);
    changes(&inventory);
    scan(5_000, &[]);
    let ended = changes(&inventory);
    assert!(
        ended.iter().all(|(kind, ..)| *kind != EventKind::Revoked),
        "{ended:?}"
    );
}

#[test]
fn a_later_release_of_unlocked_sharers_is_no_revocation() {
    // After the forced unlock of a and b, b holds it again with c before the next reading.
    let (inventory, feeds) = inventory(&["one"]);
    inventory.journal().open();
    let scan = |at, owners: &[&str]| scan(&feeds[0], at, owners, &[]);
    scan(0, &[]);
    scan(1_000, &["a", "b"]);
    unlock(&inventory, 2_000);
    scan(3_000, &["b", "c"]);
    changes(&inventory);
    scan(5_000, &[]);
    let expected = [
        change(ShareReleased, "c", Some(2_000)),
        change(Released, "b", Some(4_000)),
    ];
    assert_eq!(changes(&inventory), expected);
}
