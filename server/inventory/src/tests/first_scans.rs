//! Locks of parts of a backend that the first scans, or the last ones, did not read.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use domain::lock_detail::EventKind;
use domain::names::Source;
use domain::observation::Coverage;
use domain::tick::Tick;

use super::{Modelled, complete, inventory, now, observed};
use crate::{Inventory, InventoryWriter};
use backends::{Batch, Pass};

const UP: &str = "up:";
const LATE: &str = "late:";
const AWAY: &str = "away:";

/// A pass over `key` and `hash`, of which `hash` was read completely.
fn partial(seen: u64) -> Pass {
    let mut pass = complete(&["key", "hash"]);
    pass.sources[0].coverage = Coverage::Partial {
        seen,
        of: None,
        why: "a part does not answer".into(),
    };
    pass
}

/// A scan that finds these locks of `key` and has read these prefixes completely.
fn scan(feed: &InventoryWriter, at: i64, names: &[&str], prefixes: &[&'static str], pass: Pass) {
    let lock = Modelled {
        remaining_ms: None,
        waiters: None,
        acquired_ago_ms: None,
    };
    feed.begin(now(at));
    feed.accept(Batch {
        sent_at: Tick(at),
        locks: names
            .iter()
            .map(|name| observed(name.as_bytes(), "key", &lock, at))
            .collect(),
        gone: Vec::new(),
    });
    for &prefix in prefixes {
        let covers = move |name: &[u8]| name.starts_with(prefix.as_bytes());
        feed.read_part(&Source::fixed("key"), Arc::new(covers));
    }
    feed.end(pass, now(at));
}

/// Kinds, names and hold times of the changes since the last call.
fn changes(inventory: &Inventory) -> Vec<(EventKind, String, Option<i64>)> {
    let changes = inventory.journal().take().changes;
    changes
        .into_iter()
        .map(|change| (change.kind, change.resource.text(), change.held_ms))
        .collect()
}

fn acquired(name: &str) -> (EventKind, String, Option<i64>) {
    (EventKind::Acquired, name.to_owned(), None)
}

#[test]
fn a_part_down_at_the_start_has_its_own_first_scan() {
    // One of two prefixes is down in the first two scans; then locks of both appear and end.
    let (inventory, feeds) = inventory(&["one"]);
    inventory.journal().open();
    let both = || complete(&["key", "hash"]);
    scan(&feeds[0], 0, &["up:a"], &[UP], partial(1));
    scan(&feeds[0], 2_000, &["up:a", "up:b"], &[UP], partial(2));
    assert_eq!(changes(&inventory), [acquired("up:b")]);
    scan(&feeds[0], 4_000, &["up:a", "up:b", "late:c"], &[], both());
    assert_eq!(changes(&inventory), []);
    scan(
        &feeds[0],
        6_000,
        &["up:a", "up:b", "late:c", "late:d"],
        &[],
        both(),
    );
    assert_eq!(changes(&inventory), [acquired("late:d")]);
    scan(&feeds[0], 8_000, &["up:a", "up:b"], &[], both());
    let mut ended = changes(&inventory);
    ended.sort_by_key(|(_, name, _)| name.clone());
    let released = |name: &str, held_ms: Option<i64>| (EventKind::Released, name.to_owned(), held_ms);
    let expected = [released("late:c", None), released("late:d", Some(2_000))];
    assert_eq!(ended, expected, "the beginning of one hold is unknown");
}

#[test]
fn a_part_is_known_while_another_one_stays_away() {
    // The second of three prefixes is read later, the third never; the second fails once more.
    let (inventory, feeds) = inventory(&["one"]);
    inventory.journal().open();
    scan(&feeds[0], 0, &["up:a"], &[UP], partial(1));
    scan(&feeds[0], 2_000, &["up:a", "late:b"], &[UP, LATE], partial(2));
    assert_eq!(changes(&inventory), []);
    scan(&feeds[0], 4_000, &["up:a"], &[UP], partial(1));
    scan(
        &feeds[0],
        6_000,
        &["up:a", "late:b", "late:c"],
        &[UP, LATE],
        partial(3),
    );
    assert_eq!(changes(&inventory), [acquired("late:c")]);
    scan(
        &feeds[0],
        8_000,
        &["up:a", "late:b", "late:c", "away:d"],
        &[UP, LATE, AWAY],
        partial(4),
    );
    assert_eq!(changes(&inventory), []);
}

#[test]
fn a_source_that_is_down_at_the_start_has_its_own_first_scan() {
    // Nothing of the source `key` is read by the first scan.
    let (inventory, feeds) = inventory(&["one"]);
    inventory.journal().open();
    scan(&feeds[0], 0, &[], &[], partial(0));
    scan(&feeds[0], 2_000, &["a"], &[], complete(&["key", "hash"]));
    assert_eq!(changes(&inventory), []);
    scan(&feeds[0], 4_000, &["a", "b"], &[], complete(&["key", "hash"]));
    assert_eq!(changes(&inventory), [acquired("b")]);
}

#[test]
fn locks_of_scans_that_always_time_out_are_recorded() {
    // A scan without parts, and one whose second part is listed but never completely.
    let (inventory, feeds) = inventory(&["one", "two"]);
    inventory.journal().open();
    scan(&feeds[0], 0, &["a"], &[], partial(1));
    scan(&feeds[0], 2_000, &["a", "b"], &[], partial(2));
    assert_eq!(changes(&inventory), [acquired("b")]);
    for at in [0, 2_000] {
        scan(&feeds[1], at, &["up:a", "late:b"], &[UP], partial(2));
    }
    assert_eq!(changes(&inventory), []);
    scan(&feeds[1], 4_000, &["up:a", "late:b", "late:c"], &[UP], partial(3));
    assert_eq!(changes(&inventory), [acquired("late:c")]);
}

/// Begin and end of the time in which each lock was acquired since the last call, in milliseconds.
fn acquisitions(inventory: &Inventory) -> Vec<(String, Option<i64>, i64)> {
    let at = |time: DateTime<Utc>| (time - now(0).wall).num_milliseconds();
    let changes = inventory.journal().take().changes.into_iter();
    changes
        .filter(|change| change.kind == EventKind::Acquired)
        .map(|change| (change.resource.text(), change.not_before.map(at), at(change.at)))
        .collect()
}

#[test]
fn a_part_that_was_away_dates_its_locks_from_its_last_scan() {
    // One of two prefixes is not read for 20 s; meanwhile locks of both are acquired.
    let (inventory, feeds) = inventory(&["one"]);
    inventory.journal().open();
    let both = || complete(&["key", "hash"]);
    scan(&feeds[0], 0, &["up:a"], &[], both());
    for at in (2_000..=20_000).step_by(2_000) {
        scan(&feeds[0], at, &["up:a"], &[UP], partial(1));
    }
    scan(&feeds[0], 22_000, &["up:a", "up:b", "late:c"], &[], both());
    assert_eq!(
        acquisitions(&inventory),
        [
            ("up:b".to_owned(), None, 22_000),
            ("late:c".to_owned(), Some(0), 22_000)
        ]
    );
    scan(&feeds[0], 24_000, &["up:a", "late:d"], &[], both());
    let mut seen = changes(&inventory);
    seen.sort_by_key(|(_, name, _)| name.clone());
    let released = |name: &str, held_ms| (EventKind::Released, name.to_owned(), held_ms);
    let expected = [
        released("late:c", None),
        acquired("late:d"),
        released("up:b", Some(2_000)),
    ];
    assert_eq!(seen, expected, "the beginning of one hold is unknown");
}

#[test]
fn the_first_scan_of_a_returned_part_may_be_cut() {
    // As above; the scan at the return finds one of two locks of the part.
    let (inventory, feeds) = inventory(&["one"]);
    inventory.journal().open();
    let both = || complete(&["key", "hash"]);
    scan(&feeds[0], 0, &["up:a"], &[], both());
    for at in (2_000..=20_000).step_by(2_000) {
        scan(&feeds[0], at, &["up:a"], &[UP], partial(1));
    }
    scan(&feeds[0], 22_000, &["up:a", "late:b"], &[UP], partial(2));
    scan(&feeds[0], 24_000, &["up:a", "late:b", "late:c"], &[], both());
    assert_eq!(
        acquisitions(&inventory),
        [
            ("late:b".to_owned(), Some(0), 22_000),
            ("late:c".to_owned(), Some(0), 24_000)
        ]
    );
}

#[test]
fn a_part_that_is_never_read_completely_dates_its_locks() {
    // After one complete scan, every scan lists both prefixes, and one of them is always cut.
    let (inventory, feeds) = inventory(&["one"]);
    inventory.journal().open();
    scan(&feeds[0], 0, &["up:a", "late:b"], &[], complete(&["key", "hash"]));
    for at in (2_000..=20_000).step_by(2_000) {
        scan(&feeds[0], at, &["up:a", "late:b"], &[UP], partial(2));
    }
    scan(
        &feeds[0],
        22_000,
        &["up:a", "late:b", "late:c"],
        &[UP],
        partial(3),
    );
    assert_eq!(acquisitions(&inventory), [("late:c".to_owned(), None, 22_000)]);
}

#[test]
fn an_undecided_scan_is_no_first_scan() {
    // Most nodes are down at the start, and once more later: what they have is visible when they return.
    let (inventory, feeds) = inventory(&["one"]);
    inventory.journal().open();
    let undecided = |at: i64| {
        feeds[0].begin(now(at));
        feeds[0].mark_undecided(&Source::fixed("key"));
        feeds[0].end(partial(1), now(at));
    };
    let decided = |at: i64, names: &[&str]| scan(&feeds[0], at, names, &[], complete(&["key", "hash"]));
    undecided(0);
    undecided(2_000);
    decided(4_000, &["a"]);
    assert_eq!(acquisitions(&inventory), []);
    for at in (6_000..=20_000).step_by(2_000) {
        undecided(at);
    }
    decided(22_000, &["a", "b"]);
    assert_eq!(acquisitions(&inventory), [("b".to_owned(), Some(4_000), 22_000)]);
}
