//! Rows of every state, with hostile values.

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
fn rows_of_every_state_escape_their_values() {
    // Each row has its state's word and its number, and no value leaves its place.
    let owner = Owner::new_root(None);
    owner.with(|| {
        let (listing, from) = (RwSignal::new(listing()), Signal::stored(1_000));
        for index in 0..listing.with_untracked(Listing::len) {
            let html = view! { <LockRow listing index from/> }.into_any().to_html();
            let lock = listing
                .with_untracked(|listing| listing.row(index).cloned())
                .unwrap()
                .lock;
            assert!(html.contains(lock.state.label()), "{html}");
            assert!(html.contains(&format!("data-row=\"{index}\"")), "{html}");
            assert!(
                html.contains(&format!("aria-rowindex=\"{}\"", 1_002 + index)),
                "{html}"
            );
            let elements = [
                "<tr", "<td", "<a ", "<span", "<bdi", "<i>", "<svg", "<use", "<title", "<b>", "<!>", "</",
            ];
            let shapes = ["<rect", "<line", "<path", "<small"];
            let known = |at: &str| {
                elements
                    .iter()
                    .chain(&shapes)
                    .any(|element| at.starts_with(element))
            };
            let unknown = html.match_indices('<').find(|(at, _)| !known(&html[*at..]));
            assert_eq!(unknown, None, "{html}");
            assert!(!html.contains('\u{202e}') && !html.contains('\u{0}'), "{html}");
        }
    });
}

#[test]
fn a_missing_row_is_empty() {
    let owner = Owner::new_root(None);
    owner.with(|| {
        let (listing, from) = (RwSignal::new(listing()), Signal::stored(0));
        let html = view! { <LockRow listing index=100_000 from/> }
            .into_any()
            .to_html();
        assert!(html.starts_with("<tr ") && !html.contains("<td"), "{html}");
    });
}
