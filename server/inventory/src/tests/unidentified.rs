//! Readings that do not identify the holding of a lock.

use domain::generation::Generation;
use domain::lock_detail::{EventKind, SeenEvent};
use domain::names::{OwnerId, Resource, Source};
use domain::reported::Reported;
use domain::tick::Tick;

use super::{Modelled, complete, inventory, name, now, observed};
use crate::{Inventory, InventoryWriter, LookUp};
use backends::Batch;

/// One scan that finds `jobs`; without a generation, its holder is hidden.
fn scan(feed: &InventoryWriter, at: i64, generation: Option<&str>) {
    let lock = Modelled {
        remaining_ms: None,
        waiters: None,
        acquired_ago_ms: None,
    };
    let mut lock = observed(b"jobs", "key", &lock, at);
    match generation {
        Some(text) => lock.generation = Reported::Value(Generation::new(text)),
        None => {
            lock.generation = Reported::unknown("an ACL hides it");
            lock.owner = Reported::unknown("an ACL hides it");
        }
    }
    feed.begin(now(at));
    feed.accept(Batch {
        sent_at: Tick(at),
        locks: vec![lock],
        gone: Vec::new(),
    });
    feed.end(complete(&["key"]), now(at));
}

/// Its owner, and its events, newest first.
fn held(inventory: &Inventory, at: i64) -> (Reported<OwnerId>, Vec<EventKind>) {
    match inventory.find_lock(&name("one"), None, "jobs", now(at)) {
        LookUp::Found(lock, events) => (
            lock.owner_id.clone(),
            events.iter().map(|event| event.kind).collect(),
        ),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_hidden_holder_is_unknown_and_not_released() {
    // Hidden for two scans; then readable with the same holder; then hidden again, and held by another one.
    let (inventory, feeds) = inventory(&["one"]);
    scan(&feeds[0], 0, Some("g1"));
    for at in [2_000, 4_000] {
        scan(&feeds[0], at, None);
        let (owner, events) = held(&inventory, at);
        assert!(owner.is_unknown() && events.is_empty(), "{owner:?} {events:?}");
    }
    scan(&feeds[0], 6_000, Some("g1"));
    assert_eq!(
        held(&inventory, 6_000),
        (Reported::Value(OwnerId::new("worker-1")), Vec::new())
    );
    scan(&feeds[0], 8_000, None);
    scan(&feeds[0], 10_000, Some("g2"));
    let (_, events) = held(&inventory, 10_000);
    assert_eq!(events, [EventKind::Acquired, EventKind::Released]);
}

#[test]
fn a_hidden_holder_that_ends_ended_since_it_was_last_known() {
    // Known at 2 s, hidden until 20 s, then gone: by name, and in a scan.
    for is_named in [true, false] {
        let (inventory, feeds) = inventory(&["one"]);
        scan(&feeds[0], 0, Some("g1"));
        scan(&feeds[0], 2_000, Some("g1"));
        for at in (4_000..=20_000).step_by(2_000) {
            scan(&feeds[0], at, None);
        }
        if is_named {
            feeds[0].accept(Batch {
                sent_at: Tick(21_000),
                locks: Vec::new(),
                gone: vec![(Source::fixed("key"), Resource::from("jobs"))],
            });
        } else {
            feeds[0].begin(now(21_000));
            feeds[0].end(complete(&["key"]), now(21_000));
        }
        let events: Vec<SeenEvent> = match inventory.find_lock(&name("one"), None, "jobs", now(21_000)) {
            LookUp::NotHeld(events) => events,
            other => panic!("{other:?}"),
        };
        let ended = &events[0];
        assert_eq!((events.len(), ended.kind), (1, EventKind::Released));
        assert_eq!(ended.owner_id, Some(OwnerId::new("worker-1")));
        assert_eq!(ended.not_before, Some(now(2_000).wall));
    }
}
