//! The inventory against a plain model: whatever is fed to it, every answer equals what sorting and counting a
//! plain list would give.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use domain::backend::BackendKind;
use domain::known::Known;
use domain::names::{BackendName, OwnerId, Resource, Source};
use domain::observation::{Coverage, Lifetime, ObservedLock, Tick};
use domain::query::{InventoryQuery, Sort, SortKey};
use domain::safety::{Safety, SafetyClass};
use domain::state::LockState;
use proptest::prelude::*;

use super::{BackendInfo, Feed, Inventory, LookUp};
use crate::backends::{Batch, Pass, SourcePass};
use crate::clock::Now;

fn now(ms: i64) -> Now {
    let epoch = DateTime::<Utc>::from_timestamp_millis(1_750_000_000_000).unwrap();
    Now {
        wall: epoch + chrono::TimeDelta::milliseconds(ms),
        tick: Tick(ms),
    }
}

fn name(text: &str) -> BackendName {
    BackendName::parse(text).unwrap()
}

fn inventory(backends: &[&str]) -> (std::sync::Arc<Inventory>, Vec<Feed>) {
    let info = |backend: &&str| BackendInfo {
        name: name(backend),
        kind: BackendKind::Redis,
        address: "127.0.0.1".to_owned(),
        poll_ms: 2_000,
        capabilities: Vec::new(),
    };
    let inventory = Inventory::new(backends.iter().map(info).collect());
    let safety = Safety {
        class: SafetyClass::Efficiency,
        why: "no tokens".into(),
    };
    let feeds = backends.iter().map(|backend| {
        let safety = safety.clone();
        inventory
            .feed(&name(backend), now(0), move |_| (safety.clone(), 0))
            .unwrap()
    });
    let feeds = feeds.collect();
    (inventory, feeds)
}

/// A lock as the model keeps it.
#[derive(Debug, Clone, PartialEq)]
struct Modelled {
    remaining_ms: Option<i64>,
    waiters: Option<u32>,
    acquired_ago_ms: Option<i64>,
}

fn observed(resource: &[u8], source: &str, lock: &Modelled, at: i64) -> ObservedLock {
    let told = |value: Option<i64>| value.map_or(Known::unknown("not told"), Known::Known);
    ObservedLock {
        source: Source::parse(source).unwrap(),
        resource: Resource::from_bytes(resource),
        owner: Known::Known(OwnerId::new("worker-1")),
        owner_count: 1,
        lease_id: Known::absent("none here"),
        generation: Known::Known(domain::generation::Generation::new("g")),
        fencing_token: Known::absent("none here"),
        acquired_at: told(lock.acquired_ago_ms)
            .map(|ago| now(at).wall - chrono::TimeDelta::milliseconds(ago)),
        renewed_at: Known::unknown("not told"),
        lifetime: match lock.remaining_ms {
            Some(remaining_ms) => Lifetime::Leased {
                remaining_ms,
                ttl_ms: Known::Known(30_000),
            },
            None => Lifetime::NoTtl {
                why: "PTTL is -1".into(),
            },
        },
        waiter_count: lock.waiters.map_or(Known::unknown("not told"), Known::Known),
        oldest_waiter_ms: None,
        condition: None,
    }
}

fn whole(sources: &[&str]) -> Pass {
    let part = |source: &&str| SourcePass {
        source: Source::parse(source).unwrap(),
        coverage: Coverage::Complete,
        fault: None,
    };
    Pass {
        sources: sources.iter().map(part).collect(),
        clock: Known::unknown("no clock"),
    }
}

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

/// What each pass finds, per backend.
type World = BTreeMap<Vec<u8>, Modelled>;

fn all_pages(inventory: &Inventory, query: &InventoryQuery, at: Now) -> Vec<domain::lock::Lock> {
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

/// The order that the contract asks for, computed the plain way.
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
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Two backends go through several passes of random worlds; then every order, prefix and page size is asked.
    #[test]
    fn answers_equal_those_of_a_plain_list(
        worlds in proptest::collection::vec(
            (proptest::collection::btree_map(names(), locks(), 0..60), any::<bool>()), 1..5),
        prefix in names(),
        limit in 1u32..20,
    ) {
        let (inventory, feeds) = inventory(&["one", "two"]);
        let mut truth: [World; 2] = Default::default();
        let mut at = 0;
        for (world, second) in worlds {
            let which = usize::from(second);
            at += 10;
            feeds[which].begin(now(at));
            let locks = world.iter().map(|(name, lock)| observed(name, "key", lock, at)).collect();
            feeds[which].accept(Batch { sent_at: Tick(at), locks, gone: Vec::new() });
            feeds[which].end(whole(&["key"]), now(at));
            truth[which] = world;
        }
        let text = Resource::from_bytes(&prefix).text();
        // A prefix in text form can also mean the bytes behind its escapes; the model follows the inventory.
        let prefix = Resource::candidates(&text).pop().unwrap().as_bytes().to_vec();
        let expected: usize =
            truth.iter().map(|world| world.keys().filter(|name| name.starts_with(&prefix)).count()).sum();
        for key in SortKey::ALL {
            for descending in [false, true] {
                let sort = Sort { key, descending };
                let query = InventoryQuery { prefix: text.clone(), sort, limit, ..InventoryQuery::default() };
                let locks = all_pages(&inventory, &query, now(at));
                prop_assert_eq!(locks.len(), expected, "{:?}", sort);
                let keys: Vec<_> = locks.iter().map(|lock| {
                    let name = lock.id.resource.as_bytes().to_vec();
                    (contract_key(lock, sort), name, lock.id.backend.clone())
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
        for state in LockState::ALL {
            let query = InventoryQuery { states: vec![state], limit, ..InventoryQuery::default() };
            let listed = all_pages(&inventory, &query, now(at));
            prop_assert_eq!(listed.len(), shown.iter().filter(|lock| lock.state == state).count());
        }
    }

    /// The tree's children, walked to the leaves, hold every lock once.
    #[test]
    fn the_segment_tree_counts_every_lock_once(
        world in proptest::collection::btree_map(names(), locks(), 0..80),
    ) {
        let (inventory, feeds) = inventory(&["one"]);
        feeds[0].begin(now(0));
        let locks = world.iter().map(|(name, lock)| observed(name, "key", lock, 0)).collect();
        feeds[0].accept(Batch { sent_at: Tick(0), locks, gone: Vec::new() });
        feeds[0].end(whole(&["key"]), now(0));
        let root = inventory.prefixes("", now(0));
        prop_assert_eq!(root.total as usize, world.len());
        prop_assert_eq!(root.children.iter().map(|child| child.locks).sum::<u64>(), root.total);
        for child in root.children.iter().filter(|child| !child.is_leaf) {
            let node = inventory.prefixes(&child.prefix, now(0));
            prop_assert_eq!(node.total, child.locks);
            let listed: u64 = node.children.iter().map(|grandchild| grandchild.locks).sum();
            prop_assert_eq!(listed, child.locks);
        }
    }
}

fn healthy() -> Modelled {
    Modelled {
        remaining_ms: Some(20_000),
        waiters: Some(0),
        acquired_ago_ms: None,
    }
}

fn feed_pass(feed: &Feed, at: i64, names: &[&str], end: Option<Pass>) {
    feed.begin(now(at));
    let locks = names
        .iter()
        .map(|name| observed(name.as_bytes(), "key", &healthy(), at))
        .collect();
    feed.accept(Batch {
        sent_at: Tick(at),
        locks,
        gone: Vec::new(),
    });
    if let Some(end) = end {
        feed.end(end, now(at));
    }
}

#[test]
fn a_partial_pass_removes_nothing_and_its_missing_locks_go_stale() {
    // Two locks seen, then passes that see one of them and admit to being partial.
    let (inventory, feeds) = inventory(&["one"]);
    feed_pass(&feeds[0], 0, &["a", "b"], Some(whole(&["key"])));
    let mut partial = whole(&["key"]);
    partial.sources[0].coverage = Coverage::Partial {
        seen: 1,
        of: Some(2),
        why: "budget".into(),
    };
    for at in [2_000, 4_000, 6_000] {
        feed_pass(&feeds[0], at, &["a"], Some(partial.clone()));
    }
    let page = inventory.page(&InventoryQuery::default(), now(6_000)).unwrap();
    let states: Vec<_> = page
        .locks
        .iter()
        .map(|lock| (lock.id.resource.text(), lock.state))
        .collect();
    assert_eq!(
        states,
        [
            ("b".to_owned(), LockState::Stale),
            ("a".to_owned(), LockState::Healthy)
        ]
    );
    assert!(!page.complete);
}

#[test]
fn a_backend_that_stops_answering_keeps_its_locks_as_stale() {
    // One pass, then failures: rows stay, marked, with what held before among the reasons.
    let (inventory, feeds) = inventory(&["one"]);
    feed_pass(&feeds[0], 0, &["a"], Some(whole(&["key"])));
    feeds[0].begin(now(2_000));
    let fault = domain::backend::Fault {
        message: "cannot connect: refused".to_owned(),
        mend: "start it".to_owned(),
        at: now(2_000).wall,
        times: 1,
    };
    feeds[0].failed(fault, false);
    let page = inventory.page(&InventoryQuery::default(), now(4_001)).unwrap();
    assert_eq!(page.locks[0].state, LockState::Stale);
    assert_eq!(page.locks[0].reasons.len(), 2);
    assert!(page.locks[0].reasons[0].why.contains("refused"));
    assert_eq!((page.total, page.complete), (1, false));
}

#[test]
fn renewals_teach_a_cadence_and_silence_is_then_named() {
    // A 30 s lease renewed every 10 s, read every 2 s; then the renewals stop.
    let (inventory, feeds) = inventory(&["one"]);
    let read = |at: i64, renewed: i64| {
        feeds[0].begin(now(at));
        let lock = Modelled {
            remaining_ms: Some(renewed + 30_000 - at),
            ..healthy()
        };
        let locks = vec![observed(b"a", "key", &lock, at)];
        feeds[0].accept(Batch {
            sent_at: Tick(at),
            locks,
            gone: Vec::new(),
        });
        feeds[0].end(whole(&["key"]), now(at));
    };
    let state = |at: i64| inventory.page(&InventoryQuery::default(), now(at)).unwrap().locks[0].clone();
    for at in (0..=40_000).step_by(2_000) {
        read(at, at / 10_000 * 10_000);
    }
    let learnt = state(40_000);
    assert_eq!(
        learnt.renewal.known().map(|renewal| renewal.interval_ms),
        Some(10_000)
    );
    assert_eq!(learnt.low_marks_ms, [20_000; 4]);
    assert_eq!(learnt.state, LockState::Healthy);
    for at in (42_000..=56_000).step_by(2_000) {
        read(at, 40_000);
    }
    assert_eq!(state(56_000).state, LockState::NearExpiry);
    for at in (58_000..=66_000).step_by(2_000) {
        read(at, 40_000);
    }
    assert_eq!(state(66_000).state, LockState::NotRenewing);
}

#[test]
fn a_late_answer_never_overwrites_a_later_reading() {
    // A slow pass and a refresh by hint overtake each other: the reading sent later stands.
    let (inventory, feeds) = inventory(&["one"]);
    feed_pass(&feeds[0], 0, &["a"], Some(whole(&["key"])));
    feeds[0].begin(now(1_000));
    let contended = Modelled {
        waiters: Some(3),
        ..healthy()
    };
    let fresh = vec![observed(b"a", "key", &contended, 1_500)];
    feeds[0].accept(Batch {
        sent_at: Tick(1_500),
        locks: fresh,
        gone: Vec::new(),
    });
    let late = vec![observed(b"a", "key", &healthy(), 1_100)];
    feeds[0].accept(Batch {
        sent_at: Tick(1_100),
        locks: late,
        gone: Vec::new(),
    });
    feeds[0].end(whole(&["key"]), now(1_600));
    let page = inventory.page(&InventoryQuery::default(), now(1_600)).unwrap();
    assert_eq!(page.locks[0].waiter_count, Known::Known(3));
}

#[test]
fn a_name_in_two_sources_must_be_asked_for_by_source() {
    // A key and a mutex of one name are two locks.
    let (inventory, feeds) = inventory(&["one"]);
    feeds[0].begin(now(0));
    let locks = ["key", "mutex"]
        .map(|source| observed(b"a", source, &healthy(), 0))
        .to_vec();
    feeds[0].accept(Batch {
        sent_at: Tick(0),
        locks,
        gone: Vec::new(),
    });
    feeds[0].end(whole(&["key", "mutex"]), now(0));
    let ask = |source: Option<&str>| {
        let source = source.map(|word| Source::parse(word).unwrap());
        inventory.look_up(&name("one"), source.as_ref(), "a", now(0))
    };
    assert!(matches!(ask(None), LookUp::Ambiguous(sources) if sources.len() == 2));
    assert!(matches!(ask(Some("mutex")), LookUp::Found(lock, _) if lock.id.source.as_str() == "mutex"));
    let page = inventory
        .page(
            &InventoryQuery {
                limit: 1,
                ..InventoryQuery::default()
            },
            now(0),
        )
        .unwrap();
    assert_eq!(page.total, 2);
}

#[test]
fn a_cursor_of_another_query_is_refused_with_its_field() {
    // A made-up cursor, and one that belongs to another sort.
    let (inventory, feeds) = inventory(&["one"]);
    feed_pass(&feeds[0], 0, &["a", "b"], Some(whole(&["key"])));
    let first = InventoryQuery {
        limit: 1,
        ..InventoryQuery::default()
    };
    let cursor = inventory.page(&first, now(0)).unwrap().next_cursor;
    let other = Sort {
        key: SortKey::Held,
        descending: false,
    };
    for (cursor, sort) in [(Some("nonsense".to_owned()), Sort::default()), (cursor, other)] {
        let query = InventoryQuery {
            cursor,
            sort,
            ..InventoryQuery::default()
        };
        assert_eq!(inventory.page(&query, now(0)).unwrap_err().field, "cursor");
    }
}
