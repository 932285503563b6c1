//! What the server writes by hand, beside what the components render: hydration walks the one and expects the other.

use domain::names::OwnerId;
use domain::query::InventoryPage;
use domain::state::{Reason, StateCounts};
use domain::token::FencingToken;

use super::*;
use crate::pages::locks::listing::tests::lock;

const HOSTILE: &str = " <img src=x onerror='alert(1)'>&\"quoted\"\u{202e}\u{0} %2F\\x00 ";

/// Known, unknown and absent in turn.
fn known<T>(turn: usize, value: T) -> Known<T> {
    match turn % 3 {
        0 => Known::Known(value),
        1 => Known::unknown("it was <not> told"),
        _ => Known::absent("there is \"none\" & never was"),
    }
}

/// Every state, with each of the other fields in all of its kinds somewhere.
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
            ttl_ms: Known::Known(30_000),
            track_ms: [None, Some(30_000), Some(0)][at % 3],
            notch_ms: [None, Some(10_000), Some(0)][at / 4 % 3],
            low_marks_ms: marks[at / 6 % 3].clone(),
            session_bound: at % 11 == 0,
            waiter_count: known(at / 4, [0, 1, 1_200][at % 3]),
            reasons: vec![
                Reason {
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
fn what_the_server_writes_is_what_the_components_render() {
    // Each row of many, letter for letter; the number of the first row stands in it.
    let owner = Owner::new_root(None);
    owner.with(|| {
        let (listing, from) = (RwSignal::new(listing()), Signal::stored(1_000));
        for index in 0..listing.with_untracked(Listing::len) {
            let placed = listing.with_untracked(|listing| placed(listing, index)).unwrap();
            let written = written::row(&placed, index, aria_row(1_000, index));
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
fn the_row_of_the_page_is_the_written_one() {
    // The component gives what is written, wrapped in nothing; a row that is not there is an empty one.
    let owner = Owner::new_root(None);
    owner.with(|| {
        let (listing, from) = (RwSignal::new(listing()), Signal::stored(0));
        let placed = listing.with_untracked(|listing| placed(listing, 2)).unwrap();
        let row = |index| view! { <LockRow listing index from/> }.into_any().to_html();
        assert_eq!(row(2), written::row(&placed, 2, 4));
        assert!(row(100_000).starts_with("<tr "));
    });
}
