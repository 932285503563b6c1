//! Scoped viewers: counts, trees and revisions of their locks, at the cost of their locks.

use std::sync::atomic::Ordering;

use domain::access::{Grant, Grants, Role, Visible};
use domain::backend::BackendFailure;
use domain::generation::Generation;
use domain::lease::Scope;
use domain::names::{LockId, Resource, Source};
use domain::query::{InventoryQuery, Sort, SortKey};
use domain::state::LockState;
use domain::tick::Tick;
use proptest::prelude::*;

use super::{Modelled, complete, inventory, name, now, observed};
use crate::{Cancellation, Inventory, InventoryWriter};
use backends::Batch;

fn viewer(prefixes: &[&str]) -> Visible {
    let grant = |prefix: &&str| Grant {
        role: Role::Viewer,
        backend: None,
        prefix: Some((*prefix).to_owned()),
    };
    Visible::to(&Grants::new(prefixes.iter().map(grant).collect()))
}

const HELD: Modelled = Modelled {
    remaining_ms: Some(20_000),
    waiters: Some(1),
    acquired_ago_ms: None,
};

/// One refresh by name: these are held, those are gone.
fn refresh(feed: &InventoryWriter, held: &[&str], gone: &[&str], at: i64) {
    let source = Source::parse("key").unwrap();
    let modelled = Modelled {
        remaining_ms: Some(60_000 - at),
        ..HELD
    };
    let batch = Batch {
        sent_at: Tick(at),
        locks: held
            .iter()
            .map(|name| observed(name.as_bytes(), "key", &modelled, at))
            .collect(),
        gone: gone
            .iter()
            .map(|name| (source.clone(), Resource::from(*name)))
            .collect(),
    };
    feed.accept(batch);
    feed.refreshed(&[], now(at));
}

fn filled(names: &[String]) -> (std::sync::Arc<Inventory>, Vec<InventoryWriter>) {
    let (inventory, feeds) = inventory(&["one"]);
    feeds[0].begin(now(0));
    let held: Vec<&str> = names.iter().map(String::as_str).collect();
    refresh(&feeds[0], &held, &[], 0);
    feeds[0].end(complete(&["key"]), now(0));
    (inventory, feeds)
}

#[test]
fn foreign_changes_keep_the_revision_of_a_scope() {
    // Foreign locks change and end scans early; then locks in scope change.
    let (inventory, feeds) = filled(&["a:1".to_owned(), "a:2".to_owned(), "b:1".to_owned()]);
    let visible = viewer(&["a"]);
    let mut before = inventory.summary(&visible, now(10));
    assert_eq!(before.held_total, 2);
    for at in 11..60 {
        let held = ["b:1", &format!("b:{at}"), &format!("a2:{at}")];
        refresh(&feeds[0], &held, &[&format!("b:{}", at - 1)], at);
        pass(&feeds[0], &["a:1", "a:2", "b:1"], at);
    }
    let page = inventory.page(
        &InventoryQuery {
            visible: visible.clone(),
            ..InventoryQuery::default()
        },
        now(60),
    );
    assert_eq!(page.unwrap().revision, before.revision);
    let quiet = inventory.summary(&visible, now(60));
    assert_eq!(
        (quiet.revision, quiet.changes, quiet.held_total),
        (before.revision, before.changes, 2)
    );
    assert!(inventory.changes() > 100);
    let own: [(&[&str], &[&str]); 4] = [
        (&["a:9"], &[]),
        (&[], &["a:2"]),
        (&["a:3"], &[]),
        (&["a:4"], &["a:3"]),
    ];
    for (step, (held, gone)) in own.into_iter().enumerate() {
        let at = 100 + 10 * i64::try_from(step).unwrap();
        refresh(&feeds[0], held, gone, at);
        let after = inventory.summary(&visible, now(at + 1));
        assert!(
            after.revision > before.revision && after.changes > before.changes,
            "step {step}"
        );
        before = after;
    }
    // A failing backend and the age of unchanged rows are visible, too.
    let fault = BackendFailure {
        message: "refused".to_owned(),
        remedy: "Open the port.".to_owned(),
        at: now(20_000).wall,
        times: 1,
    };
    feeds[0].failed(fault, true);
    let failed = inventory.revision_of(&visible, now(20_000));
    assert!(failed > before.revision);
    pass(&feeds[0], &["a:4"], 24_999);
    let recovered = inventory.revision_of(&visible, now(24_999));
    assert!(recovered > failed);
    pass(&feeds[0], &["a:4"], 25_000);
    assert!(inventory.revision_of(&visible, now(25_000)) > recovered);
}

/// A scan that ends at once.
fn pass(feed: &InventoryWriter, held: &[&str], at: i64) {
    feed.begin(now(at));
    refresh(feed, held, &[], at);
    feed.end(complete(&["key"]), now(at));
}

#[test]
fn equal_scopes_share_one_computation() {
    // Grants in another order are the same scope.
    let (inventory, feeds) = filled(&["a:1".to_owned(), "b:1".to_owned(), "c:1".to_owned()]);
    let viewers: Vec<Visible> = (0..50)
        .map(|number| {
            if number % 2 == 0 {
                viewer(&["a", "b"])
            } else {
                viewer(&["b", "a", "b"])
            }
        })
        .collect();
    for round in 1..=3_i64 {
        refresh(&feeds[0], &["c:1", &format!("c:{round}")], &[], round);
        for visible in &viewers {
            assert_eq!(inventory.summary(visible, now(round)).held_total, 2);
            inventory.revision_of(visible, now(round));
        }
        assert_eq!(
            inventory.parts.computed.load(Ordering::Relaxed),
            round.unsigned_abs()
        );
    }
}

#[test]
fn scoped_counts_read_only_locks_in_scope() {
    // 20,000 foreign locks, before and after; blocks have 8 locks under test, so each end of a
    // range costs at most 8.
    let others = (0..20_000).map(|number| format!("{}:{number:05}", if number % 2 == 0 { "a" } else { "z" }));
    let own = (0..40).map(|number| format!("m:{number:05}"));
    let (inventory, _feeds) = filled(&others.chain(own).collect::<Vec<_>>());
    let visible = viewer(&["m", "n:x"]);
    let slot = inventory.slot(&name("one")).unwrap();
    let visited = |work: &dyn Fn()| {
        slot.read().shard.order.visited.store(0, Ordering::Relaxed);
        work();
        slot.read().shard.order.visited.load(Ordering::Relaxed)
    };
    assert!(visited(&|| assert_eq!(inventory.summary(&visible, now(1)).held_total, 40)) <= 16 + 56);
    let query = InventoryQuery {
        visible: visible.clone(),
        ..InventoryQuery::default()
    };
    assert!(visited(&|| assert_eq!(inventory.page(&query, now(1)).unwrap().total, 40)) <= 32);
    assert!(visited(&|| assert_eq!(inventory.prefixes("", &visible, now(1)).total, 40)) <= 32);
}

#[test]
fn an_abandoned_search_ends_at_once() {
    // In every order.
    let (inventory, _feeds) = filled(&(0..100).map(|number| format!("a:{number}")).collect::<Vec<_>>());
    let abandon = Cancellation::default();
    drop(abandon.on_drop());
    for key in SortKey::ALL {
        for descending in [false, true] {
            let query = InventoryQuery {
                q: "a".to_owned(),
                sort: Sort { key, descending },
                ..InventoryQuery::default()
            };
            let page = inventory.page_unless(&query, now(1), &abandon).unwrap();
            assert_eq!((page.locks.len(), page.total), (0, 0), "{key:?}");
            assert_eq!(inventory.page(&query, now(1)).unwrap().total, 100);
        }
    }
}

#[test]
fn long_names_at_the_end_of_a_page_can_be_paged_past() {
    // Names of 10 KB that differ in their last byte only, and one that is removed while it ends
    // a page.
    let long = |last: char| format!("a:{}{last}", "x".repeat(10_000));
    let names: Vec<String> = ('a'..='e')
        .map(long)
        .chain(["a:x".to_owned(), "b".to_owned()])
        .collect();
    let (inventory, feeds) = filled(&names);
    for key in SortKey::ALL {
        for descending in [false, true] {
            let mut query = InventoryQuery {
                limit: 1,
                sort: Sort { key, descending },
                ..InventoryQuery::default()
            };
            let mut found = Vec::new();
            loop {
                let page = inventory.page(&query, now(1)).unwrap();
                found.extend(page.locks.iter().map(|lock| lock.id.resource.text()));
                assert!(found.len() <= names.len(), "{key:?}");
                let Some(cursor) = page.next_cursor else { break };
                assert!(cursor.len() <= domain::limits::QUERY_BYTES_MAX);
                query.cursor = Some(cursor);
            }
            found.sort();
            let mut all = names.clone();
            all.sort();
            assert_eq!(found, all, "{key:?} {descending}");
        }
    }
    let query = InventoryQuery {
        limit: 3,
        sort: Sort {
            key: SortKey::Resource,
            descending: false,
        },
        ..InventoryQuery::default()
    };
    let first = inventory.page(&query, now(1)).unwrap();
    refresh(&feeds[0], &[], &[&long('b')], 2);
    let next = InventoryQuery {
        cursor: first.next_cursor,
        limit: 100,
        ..query
    };
    let rest = inventory.page(&next, now(2)).unwrap();
    let rest: Vec<String> = rest.locks.iter().map(|lock| lock.id.resource.text()).collect();
    // Rows may repeat; none is left out.
    assert!(
        [long('c'), long('d'), long('e'), "b".to_owned()]
            .iter()
            .all(|name| rest.contains(name))
    );
}

fn names() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        prop_oneof![
            Just("a"),
            Just("b"),
            Just("ab"),
            Just(":"),
            Just("/"),
            Just("\u{1}")
        ],
        1..6,
    )
    .prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 4))]

    /// Locks are added, changed and removed; after each step every count of a scoped viewer
    /// equals a plain filter.
    #[test]
    fn scoped_counts_equal_the_filtered_list_under_churn(
        steps in proptest::collection::vec((proptest::collection::vec(names(), 0..25), proptest::collection::vec(names(), 0..10)), 1..8),
        scope in proptest::collection::vec(names(), 0..4),
        prefix in names(),
    ) {
        let (inventory, feeds) = inventory(&["one"]);
        feeds[0].begin(now(0));
        feeds[0].end(complete(&["key"]), now(0));
        let prefixes: Vec<&str> = scope.iter().map(String::as_str).collect();
        let visible = viewer(&prefixes);
        let covered = visible.on(&name("one"));
        let mut truth = std::collections::BTreeSet::new();
        for (step, (held, gone)) in steps.iter().enumerate() {
            let at = 10 + i64::try_from(step).unwrap();
            let held: Vec<&str> = held.iter().map(String::as_str).collect();
            let gone: Vec<&str> = gone.iter().map(String::as_str).filter(|name| !held.contains(name)).collect();
            refresh(&feeds[0], &held, &gone, at);
            truth.extend(held.iter().map(|name| (*name).to_owned()));
            truth.retain(|name| !gone.contains(&name.as_str()));
            let seen: Vec<&String> = truth.iter().filter(|name| covered.covers(name)).collect();
            let below = seen.iter().filter(|name| name.starts_with(&prefix)).count() as u64;
            let summary = inventory.summary(&visible, now(at));
            prop_assert_eq!(summary.held_total, seen.len() as u64);
            let locks: u64 = inventory.backends_visible(&visible, now(at)).iter().map(|view| view.locks).sum();
            prop_assert_eq!(locks, seen.len() as u64);
            let tree = inventory.prefixes(&prefix, &visible, now(at));
            prop_assert_eq!(tree.total, below);
            prop_assert_eq!(tree.children.iter().map(|child| child.locks).sum::<u64>(), below);
            let distinct: std::collections::BTreeSet<&str> = tree.children.iter().map(|child| child.prefix.as_str()).collect();
            prop_assert_eq!(distinct.len(), tree.children.len());
            for key in SortKey::ALL {
                for descending in [false, true] {
                    let query = InventoryQuery {
                        prefix: prefix.clone(),
                        visible: visible.clone(),
                        sort: Sort { key, descending },
                        limit: 1_000,
                        ..InventoryQuery::default()
                    };
                    let page = inventory.page(&query, now(at)).unwrap();
                    let mut listed: Vec<Vec<u8>> = page.locks.iter().map(|lock| lock.id.resource.as_bytes().to_vec()).collect();
                    listed.sort();
                    let expected: Vec<Vec<u8>> = seen.iter().filter(|name| name.starts_with(&prefix)).map(|name| name.as_bytes().to_vec()).collect();
                    prop_assert_eq!(&listed, &expected, "{:?}", key);
                    prop_assert_eq!(page.total, below);
                    let healthy = page.states.count(LockState::Contended) + page.states.count(LockState::Healthy);
                    prop_assert!(healthy <= below);
                    let search = InventoryQuery { q: "b".to_owned(), ..query };
                    let found = inventory.page(&search, now(at)).unwrap();
                    let matching = seen.iter().filter(|name| name.starts_with(&prefix) && name.contains('b')).count() as u64;
                    // The owner of every lock is worker-1, without a b.
                    prop_assert_eq!(found.total, matching);
                }
            }
        }
    }
}

#[test]
fn other_locks_with_a_generation_are_counted_in_the_scope() {
    // Each has the same generation.
    let (inventory, _feeds) = filled(&["a:1", "a:2", "b:1", "b:2", "b:3"].map(str::to_owned));
    let id = LockId {
        backend: name("one"),
        source: Source::parse("key").unwrap(),
        resource: Resource::from("a:1"),
    };
    let count = |scope: &Scope| inventory.others_with_generation(&id, &Generation::new("g"), scope);
    let of_tenant = viewer(&["a"]).on(&id.backend);
    assert_eq!((count(&of_tenant), count(&Scope::everything())), (1, 4));
}
