//! Property tests: random observations compared with a plain list.

use std::collections::BTreeMap;

use domain::access::Visible;
use domain::names::Resource;
use domain::query::{InventoryQuery, Sort, SortKey};
use domain::state::LockState;
use domain::tick::Tick;
use proptest::prelude::*;

use super::{Modelled, complete, inventory, now, observed};
use crate::Inventory;
use backends::Batch;
use runtime::clock::ClockReading;

/// Names with shared beginnings, so that prefixes and segments matter.
fn names() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "(a|ab|tenant_1|tenant_12)(:|/|)(x|y|)(:|)[0-9]{0,2}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 1..4),
    ]
}

fn locks() -> impl Strategy<Value = Modelled> {
    use proptest::option::of as maybe;
    (maybe(-9_000i64..30_000), maybe(0u32..4), maybe(0i64..9_000)).prop_map(
        |(remaining_ms, waiters, acquired_ago_ms)| Modelled {
            remaining_ms,
            waiters,
            acquired_ago_ms,
        },
    )
}

/// Observed locks per backend, by name and source, so that two sources may have one name.
type ModelWorld = BTreeMap<(Vec<u8>, &'static str), Modelled>;

const SOURCES: [&str; 3] = ["key", "hash", "a later one"];

fn worlds() -> impl Strategy<Value = ModelWorld> {
    proptest::collection::btree_map((names(), proptest::sample::select(&SOURCES[..])), locks(), 0..60)
}

fn all_pages(inventory: &Inventory, query: &InventoryQuery, at: ClockReading) -> Vec<domain::lock::Lock> {
    let mut query = query.clone();
    let mut locks = Vec::new();
    loop {
        let page = inventory.page(&query, at).unwrap();
        locks.extend(page.locks);
        match page.next_cursor {
            Some(cursor) => query.cursor = Some(cursor),
            None => return locks,
        }
    }
}

/// The order of the contract, computed in the simple way.
fn contract_key(lock: &domain::lock::Lock, sort: Sort) -> (bool, i64) {
    let turn = |value: Option<i64>| match value {
        Some(value) => (false, if sort.descending { -value } else { value }),
        None => (true, 0),
    };
    match sort.key {
        SortKey::Resource => (false, 0),
        SortKey::Held => turn(lock.held_ms.known().copied()),
        SortKey::Remaining => turn(lock.remaining_ms.known().copied()),
        SortKey::Waiters => turn(lock.waiter_count.known().map(|count| i64::from(*count))),
        SortKey::State => turn(Some(-(lock.state.rank() as i64))),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 4))]

    /// Two backends with several scans of random locks; then every order, prefix and page size
    /// is queried.
    #[test]
    fn pages_equal_those_of_a_plain_list(
        worlds in proptest::collection::vec(
            (worlds(), any::<bool>()), 1..5),
        prefix in names(),
        limit in 1u32..20,
        asked_ms in 0i64..3_900,
    ) {
        let (inventory, feeds) = inventory(&["one", "two"]);
        let mut latest: [ModelWorld; 2] = Default::default();
        let mut at = 0;
        for (world, second) in worlds {
            let which = usize::from(second);
            at += 10;
            feeds[which].begin(now(at));
            let locks = world.iter().map(|((name, source), lock)| observed(name, source, lock, at)).collect();
            feeds[which].accept(Batch { sent_at: Tick(at), locks, gone: Vec::new() });
            feeds[which].end(complete(&SOURCES), now(at));
            latest[which] = world;
        }
        // Leases expire between the last reading and the query.
        at += asked_ms;
        let text = Resource::from_bytes(&prefix).text();
        // A prefix in text form can also mean its unescaped bytes; the model follows the
        // inventory.
        let prefix = Resource::candidates(&text).pop().unwrap().as_bytes().to_vec();
        let expected: usize =
            latest.iter().map(|world| world.keys().filter(|(name, _)| name.starts_with(&prefix)).count()).sum();
        for key in SortKey::ALL {
            for descending in [false, true] {
                let sort = Sort { key, descending };
                let query = InventoryQuery { prefix: text.clone(), sort, limit, ..InventoryQuery::default() };
                let locks = all_pages(&inventory, &query, now(at));
                prop_assert_eq!(locks.len(), expected, "{:?}", sort);
                let keys: Vec<_> = locks.iter().map(|lock| {
                    let name = lock.id.resource.as_bytes().to_vec();
                    (contract_key(lock, sort), name, lock.id.backend.clone(), lock.id.source.clone())
                }).collect();
                let mut sorted = keys.clone();
                sorted.sort();
                if key == SortKey::Resource && descending {
                    sorted.reverse();
                }
                prop_assert_eq!(keys, sorted, "{:?}", sort);
            }
        }
        let page = inventory.page(&InventoryQuery { prefix: text, ..InventoryQuery::default() }, now(at)).unwrap();
        prop_assert_eq!(page.total as usize, expected);
        let shown = all_pages(&inventory, &InventoryQuery::default(), now(at));
        let is_over = |state| matches!(state, LockState::Expired | LockState::Unknown | LockState::Stale);
        for lock in &shown {
            let has_time_left = lock.remaining_ms.known().is_none_or(|ms| *ms > 0);
            prop_assert!(has_time_left || is_over(lock.state), "{:?}", lock);
            prop_assert_eq!(lock.reasons[0].state, lock.state);
        }
        let tree = inventory.prefixes("", &Visible::default(), now(at));
        let facets = inventory.page(&InventoryQuery::default(), now(at)).unwrap().states;
        for state in LockState::ALL {
            let query = InventoryQuery { states: vec![state], limit, ..InventoryQuery::default() };
            let listed = all_pages(&inventory, &query, now(at));
            let count = shown.iter().filter(|lock| lock.state == state).count();
            prop_assert_eq!(listed.len(), count);
            prop_assert_eq!(tree.states.count(state) as usize, count);
            prop_assert_eq!(facets.count(state) as usize, count);
        }
    }

    /// The tree's children, walked to the leaves, contain every lock once.
    #[test]
    fn the_segment_tree_counts_every_lock_once(
        world in proptest::collection::btree_map(names(), locks(), 0..80),
    ) {
        let (inventory, feeds) = inventory(&["one"]);
        feeds[0].begin(now(0));
        let locks = world.iter().map(|(name, lock)| observed(name, "key", lock, 0)).collect();
        feeds[0].accept(Batch { sent_at: Tick(0), locks, gone: Vec::new() });
        feeds[0].end(complete(&["key"]), now(0));
        let root = inventory.prefixes("", &Visible::default(), now(0));
        prop_assert_eq!(root.total as usize, world.len());
        prop_assert_eq!(root.children.iter().map(|child| child.locks).sum::<u64>(), root.total);
        for child in root.children.iter().filter(|child| !child.is_leaf) {
            let node = inventory.prefixes(&child.prefix, &Visible::default(), now(0));
            prop_assert_eq!(node.total, child.locks);
            let listed: u64 = node.children.iter().map(|grandchild| grandchild.locks).sum();
            prop_assert_eq!(listed, child.locks);
        }
    }
}
