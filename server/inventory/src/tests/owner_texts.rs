//! Holdings whose owner is read under another text.

use domain::access::{Grant, Grants, Role, Visible};
use domain::generation::Generation;
use domain::lock_detail::EventKind;
use domain::names::OwnerId;
use domain::observation::{Lifetime, ObservedLock};
use domain::reported::Reported;
use domain::tick::Tick;
use domain::token::FencingToken;

use super::{Modelled, complete, inventory, name, now, observed};
use crate::{Inventory, InventoryWriter, LookUp};
use backends::Batch;

/// `jobs` with this owner and generation.
fn jobs(owner: &str, generation: &str, at: i64) -> ObservedLock {
    let lock = Modelled {
        remaining_ms: None,
        waiters: None,
        acquired_ago_ms: None,
    };
    let mut lock = observed(b"jobs", "key", &lock, at);
    lock.owner = Reported::Value(OwnerId::new(owner));
    lock.generation = Reported::Value(Generation::new(generation));
    lock
}

/// One scan that finds `jobs` with this owner, generation and token; `None`: it is free.
fn scan(feed: &InventoryWriter, at: i64, held: Option<(&str, &str, Option<u64>)>) {
    let read = |(owner, generation, token): (&str, &str, Option<u64>)| {
        let mut lock = jobs(owner, generation, at);
        if let Some(token) = token {
            lock.fencing_token = Reported::Value(FencingToken::new(token));
        }
        lock
    };
    scan_lock(feed, at, held.map(read));
}

fn scan_lock(feed: &InventoryWriter, at: i64, held: Option<ObservedLock>) {
    feed.begin(now(at));
    feed.accept(Batch {
        sent_at: Tick(at),
        locks: held.into_iter().collect(),
        gone: Vec::new(),
    });
    feed.end(complete(&["key"]), now(at));
}

/// Kinds, owners and hold times of the changes since the last call.
fn changes(inventory: &Inventory) -> Vec<(EventKind, Option<String>, Option<i64>)> {
    let changes = inventory.journal().take().changes;
    changes
        .into_iter()
        .map(|change| {
            (
                change.kind,
                change.owner.map(|owner| owner.to_string()),
                change.held_ms,
            )
        })
        .collect()
}

fn acquired(owner: &str) -> (EventKind, Option<String>, Option<i64>) {
    (EventKind::Acquired, Some(owner.to_owned()), None)
}

fn released(owner: &str, held_ms: i64) -> (EventKind, Option<String>, Option<i64>) {
    (EventKind::Released, Some(owner.to_owned()), Some(held_ms))
}

#[test]
fn a_leader_that_changes_its_value_keeps_its_holding() {
    // The list shows the new owner at once, also to a viewer of this name alone; the next leader is another holding.
    let (inventory, feeds) = inventory(&["one"]);
    inventory.journal().open();
    let viewer = Visible::to(&Grants::new(vec![Grant {
        role: Role::Viewer,
        backend: None,
        prefix: Some("jobs".to_owned()),
    }]));
    scan(&feeds[0], 0, None);
    scan(&feeds[0], 1_000, Some(("first", "rev:7", Some(7))));
    assert_eq!(changes(&inventory), [acquired("first")]);
    let shown = |at| inventory.summary(&viewer, now(at)).changes;
    let before = shown(1_000);
    scan(&feeds[0], 3_000, Some(("second", "rev:7", Some(7))));
    assert_eq!(changes(&inventory), []);
    assert_eq!(shown(3_000), before + 1);
    let LookUp::Found(lock, _) = inventory.find_lock(&name("one"), None, "jobs", now(3_000)) else {
        panic!("not found");
    };
    assert_eq!(lock.owner_id, Reported::Value(OwnerId::new("second")));
    assert_eq!(lock.held_at_least_ms, 2_000);
    scan(&feeds[0], 4_000, Some(("second", "rev:9", Some(9))));
    assert_eq!(
        changes(&inventory),
        [released("second", 3_000), acquired("second")]
    );
}

#[test]
fn without_a_token_another_owner_is_another_holding() {
    // History and alerts have nothing else to tell two holdings apart.
    let (inventory, feeds) = inventory(&["one"]);
    inventory.journal().open();
    scan(&feeds[0], 0, None);
    scan(&feeds[0], 1_000, Some(("first", "g", None)));
    scan(&feeds[0], 3_000, Some(("second", "g", None)));
    let expected = [acquired("first"), released("first", 2_000), acquired("second")];
    assert_eq!(changes(&inventory), expected);
}

#[test]
fn a_session_that_changes_its_name_keeps_its_holding() {
    // Its events have the name that it was first read with; the session of another start is another holding.
    let (inventory, feeds) = inventory(&["one"]);
    inventory.journal().open();
    let scan = |at, held: Option<(&str, &str)>| {
        let read = |(owner, generation): (&str, &str)| {
            let mut lock = jobs(owner, generation, at);
            lock.lifetime = Lifetime::Session {
                why: "no lease".into(),
            };
            lock
        };
        scan_lock(&feeds[0], at, held.map(read));
    };
    scan(0, None);
    scan(1_000, Some(("close#7", "pid:7@1")));
    scan(3_000, Some(("close: step 2#7", "pid:7@1")));
    assert_eq!(changes(&inventory), [acquired("close#7")]);
    scan(4_000, Some(("close#7", "pid:7@2")));
    assert_eq!(
        changes(&inventory),
        [released("close#7", 3_000), acquired("close#7")]
    );
}
