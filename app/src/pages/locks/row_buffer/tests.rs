//! Rows on screen during updates, with and without a pointer in the table.

use domain::backend::BackendKind;
use domain::names::{BackendName, LockId, OwnerId, Resource, Source};
use domain::reported::Reported;
use domain::safety::{Safety, SafetyClass};
use domain::state::{LockState, StateCounts};

use super::*;

pub(in crate::pages) fn lock(name: &str, owner: &str) -> Lock {
    Lock {
        id: LockId {
            backend: BackendName::parse("cache").unwrap(),
            source: Source::fixed("key"),
            resource: Resource::from(name),
        },
        kind: BackendKind::Redis,
        owner_id: Reported::Value(OwnerId::new(owner)),
        owner_count: 1,
        lease_id: Reported::unknown("test"),
        generation: Reported::unknown("test"),
        fencing_token: Reported::absent("test"),
        acquired_at: Reported::unknown("test"),
        expires_at: Reported::unknown("test"),
        held_ms: Reported::unknown("test"),
        held_at_least_ms: 0,
        ttl_ms: Reported::unknown("test"),
        remaining_ms: Reported::unknown("test"),
        waiter_count: Reported::Value(0),
        state: LockState::Healthy,
        reasons: Vec::new(),
        safety: Safety {
            class: SafetyClass::Efficiency,
            why: "test".into(),
        },
        renewal: Reported::unknown("test"),
        observed_at: chrono::DateTime::UNIX_EPOCH,
        age_ms: 0,
        track_ms: None,
        notch_ms: None,
        low_marks_ms: Vec::new(),
        session_bound: false,
    }
}

/// `a:1` is a lock named `a` of owner `1`.
fn page(rows: &str, next: Option<&str>) -> InventoryPage {
    let locks = rows
        .split_whitespace()
        .map(|row| row.split_once(':').unwrap())
        .map(|(name, owner)| lock(name, owner));
    InventoryPage {
        locks: locks.collect(),
        next_cursor: next.map(str::to_owned),
        total: 9,
        complete: true,
        backends: Vec::new(),
        states: StateCounts::default(),
        held_total: 9,
        revision: 1,
    }
}

/// The rows as in [`page`]; `!` marks one changed at 7, `-` a removed one.
fn displayed(listing: &Listing) -> String {
    let rows = (0..listing.len()).filter_map(|index| listing.row(index));
    let text = rows.map(|row| {
        let owner = row.lock.owner_id.known().unwrap();
        let changed = if row.changed_at == Some(7) { "!" } else { "" };
        let gone = if row.gone { "-" } else { "" };
        format!("{}:{owner}{changed}{gone}", row.lock.id.resource.text())
    });
    text.collect::<Vec<_>>().join(" ")
}

#[test]
fn rows_keep_their_places_under_the_pointer() {
    // A refetch under the pointer swaps two rows, removes one and adds one.
    let mut listing = Listing::new("q".to_owned(), page("a:1 b:1 c:1 d:1", None));
    listing.hold(true, 7);
    listing.refresh(0, page("e:1 b:2 a:1 c:1", None), 7);
    assert_eq!(displayed(&listing), "a:1 b:2! c:1 d:1-");
    // One removed, one added, and two that changed places.
    assert_eq!(listing.waiting(), 4);
    listing.hold(false, 7);
    assert_eq!(displayed(&listing), "e:1! b:2! a:1 c:1");
    assert_eq!(listing.waiting(), 0);
}

#[test]
fn without_a_pointer_changes_are_applied_and_marked() {
    // Only relevant changes are marked: owners, not renewals.
    let mut listing = Listing::new("q".to_owned(), page("a:1 b:1", None));
    let mut renewed = page("b:1 a:2", None);
    renewed.locks[0].remaining_ms = Reported::Value(30_000);
    listing.refresh(0, renewed, 7);
    assert_eq!(displayed(&listing), "b:1 a:2!");
    assert_eq!(listing.row(0).unwrap().lock.remaining_ms, Reported::Value(30_000));
}

#[test]
fn a_row_that_moves_between_pages_is_on_screen_once() {
    // Two pages; a refetch of the second returns a row of the first.
    let mut listing = Listing::new("q".to_owned(), page("a:1 b:1", Some("2")));
    listing.append("2", page("c:1 d:1", Some("4")));
    listing.refresh(1, page("b:1 c:1", Some("4")), 7);
    assert_eq!(displayed(&listing), "a:1 b:1 c:1");
    assert_eq!(listing.pages_within(2, 3), [(1, "2".to_owned())]);
    assert_eq!(listing.next_cursor(), Some("4"));
}

#[test]
fn a_late_or_repeated_page_is_not_added() {
    // Two responses for one cursor, as after a slow network.
    let mut listing = Listing::new("q".to_owned(), page("a:1 b:1", Some("2")));
    listing.append("2", page("b:1 c:1", None));
    listing.append("2", page("b:1 c:1", None));
    assert_eq!(displayed(&listing), "a:1 b:1 c:1");
    assert_eq!(listing.next_cursor(), None);
}

#[test]
fn waiting_changes_can_be_applied_under_the_pointer() {
    // The button "n changes waiting".
    let mut listing = Listing::new("q".to_owned(), page("a:1 b:1", None));
    listing.hold(true, 7);
    listing.refresh(0, page("b:1", None), 7);
    listing.release(7);
    assert_eq!((displayed(&listing), listing.waiting()), ("b:1".to_owned(), 0));
    listing.refresh(0, page("c:1", None), 7);
    assert_eq!(displayed(&listing), "b:1-");
}
