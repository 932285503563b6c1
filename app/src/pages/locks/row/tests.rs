//! Server-rendered rows equal those of the components: hydration expects the same nodes.

use domain::names::OwnerId;
use domain::query::InventoryPage;
use domain::state::{StateCounts, StateReason};
use domain::token::FencingToken;

use super::*;
use crate::pages::locks::row_buffer::tests::lock;

const HOSTILE: &str = " <img src=x onerror='alert(1)'>&\"quoted\"\u{202e}\u{0} %2F\\x00 ";

/// Value, unknown and not applicable in turn.
fn known<T>(turn: usize, value: T) -> Reported<T> {
    match turn % 3 {
        0 => Reported::Value(value),
        1 => Reported::unknown("it was <not> reported"),
        _ => Reported::absent("it is \"absent\" & never was"),
    }
}

/// Every state, with each kind of value of the other fields.
fn locks() -> Vec<Lock> {
    let names = [
        "",
        "a:b",
        "a:b:c",
        HOSTILE,
        "a:b:c",
        "tenant_1:billing-close:2026-04:shard-7",
        "50%",
        "é",
    ];
    let long = "a:".repeat(300);
    let mut locks = Vec::new();
    for (at, state) in LockState::ALL
        .into_iter()
        .cycle()
        .take(8 * LockState::COUNT)
        .enumerate()
    {
        let name = if at % 9 == 8 {
            long.as_str()
        } else {
            names[at % names.len()]
        };
        let marks = [vec![], vec![0], vec![19_400, 20_600, 7_777]];
        locks.push(Lock {
            owner_id: known(
                at / 2,
                OwnerId::new(["", "w", HOSTILE, "billing-api-2.eu-west"][at % 4]),
            ),
            owner_count: [0, 1, 2][at % 3],
            fencing_token: known(at / 3, FencingToken::new(7)),
            held_ms: known(at / 5, 61_000),
            held_at_least_ms: 4_200,
            remaining_ms: known(at / 7, [-4_000, 0, 1, 12_345][at % 4]),
            ttl_ms: Reported::Value(30_000),
            track_ms: [None, Some(30_000), Some(0)][at % 3],
            notch_ms: [None, Some(10_000), Some(0)][at / 4 % 3],
            low_marks_ms: marks[at / 6 % 3].clone(),
            session_bound: at % 11 == 0,
            waiter_count: known(at / 4, [0, 1, 1_200][at % 3]),
            reasons: vec![
                StateReason {
                    state,
                    why: [HOSTILE, ""][at % 2].into()
                };
                at % 3
            ],
            age_ms: 14_000,
            state,
            ..lock(name, "worker-7")
        });
    }
    locks
}

fn listing() -> Listing {
    Listing::new(
        String::new(),
        InventoryPage {
            locks: locks(),
            next_cursor: None,
            total: 0,
            complete: true,
            backends: Vec::new(),
            states: StateCounts::default(),
            held_total: 0,
            revision: 1,
        },
    )
}

#[test]
fn server_rows_equal_component_rows() {
    // Each row byte for byte; the number of the first row is in it.
    let owner = Owner::new_root(None);
    owner.with(|| {
        let (listing, from) = (RwSignal::new(listing()), Signal::stored(1_000));
        for index in 0..listing.with_untracked(Listing::len) {
            let placed = listing.with_untracked(|listing| placed(listing, index)).unwrap();
            let written = ssr::row(&placed, index, aria_row(1_000, index));
            assert_eq!(
                written,
                live_row(listing, index, from).to_html(),
                "{:#?}",
                placed.row.lock
            );
        }
    });
}

#[test]
fn the_component_renders_the_server_row() {
    // The component renders the text without a wrapper; a missing row is an empty one.
    let owner = Owner::new_root(None);
    owner.with(|| {
        let (listing, from) = (RwSignal::new(listing()), Signal::stored(0));
        let placed = listing.with_untracked(|listing| placed(listing, 2)).unwrap();
        let row = |index| view! { <LockRow listing index from/> }.into_any().to_html();
        assert_eq!(row(2), ssr::row(&placed, 2, 4));
        assert!(row(100_000).starts_with("<tr "));
    });
}
