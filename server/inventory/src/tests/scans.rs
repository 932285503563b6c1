//! Effects of scans, refreshes and failures on the list.

use domain::backend::{BackendKind, BackendTraits};
use domain::names::{Resource, Source};
use domain::observation::Coverage;
use domain::query::{InventoryQuery, Sort, SortKey};
use domain::reported::Reported;
use domain::safety::{Safety, SafetyClass};
use domain::state::LockState;
use domain::tick::Tick;

use super::{Modelled, complete, inventory, name, now, observed};
use crate::{BackendInfo, Inventory, InventoryWriter, LookUp};
use backends::{Batch, Pass};

fn healthy() -> Modelled {
    Modelled {
        remaining_ms: Some(20_000),
        waiters: Some(0),
        acquired_ago_ms: None,
    }
}

fn feed_pass(feed: &InventoryWriter, at: i64, names: &[&str], end: Option<Pass>) {
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
fn a_partial_scan_removes_no_lock_and_makes_missing_ones_stale() {
    // Two locks observed, then partial scans that see one of them.
    let (inventory, feeds) = inventory(&["one"]);
    feed_pass(&feeds[0], 0, &["a", "b"], Some(complete(&["key"])));
    let mut partial = complete(&["key"]);
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
fn a_partial_pass_removes_what_its_whole_parts_have_not_found() {
    // Of three missing locks one is in the part that was read.
    let (inventory, feeds) = inventory(&["one"]);
    feed_pass(
        &feeds[0],
        0,
        &["read:a", "read:b", "lost:c"],
        Some(complete(&["key"])),
    );
    let mut partial = complete(&["key"]);
    partial.sources[0].coverage = Coverage::Partial {
        seen: 1,
        of: None,
        why: "one of two nodes does not answer".into(),
    };
    for at in [2_000, 4_000, 6_000] {
        feed_pass(&feeds[0], at, &["read:a"], None);
        let source = Source::parse("key").unwrap();
        feeds[0].read_part(&source, std::sync::Arc::new(|name| name.starts_with(b"read:")));
        feeds[0].end(partial.clone(), now(at));
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
            ("lost:c".to_owned(), LockState::Stale),
            ("read:a".to_owned(), LockState::Healthy)
        ]
    );
}

#[test]
fn an_unreachable_backend_keeps_its_locks_as_stale() {
    // One scan, then failures: rows stay as stale, with their earlier states among the reasons.
    let (inventory, feeds) = inventory(&["one"]);
    feed_pass(&feeds[0], 0, &["a"], Some(complete(&["key"])));
    feeds[0].begin(now(2_000));
    let fault = domain::backend::BackendFailure {
        message: "cannot connect: refused".to_owned(),
        remedy: "start it".to_owned(),
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
fn renewal_intervals_are_learnt_and_silence_is_detected() {
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
        feeds[0].end(complete(&["key"]), now(at));
    };
    let state = |at: i64| inventory.page(&InventoryQuery::default(), now(at)).unwrap().locks[0].clone();
    for at in (0..=40_000).step_by(2_000) {
        read(at, at / 10_000 * 10_000);
    }
    let lock = state(40_000);
    assert_eq!(
        lock.renewal.known().map(|renewal| renewal.interval_ms),
        Some(10_000)
    );
    assert_eq!(lock.low_marks_ms, [20_000; 4]);
    assert_eq!(lock.state, LockState::Healthy);
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
    // A slow scan and a refresh overtake each other: the later request wins.
    let (inventory, feeds) = inventory(&["one"]);
    feed_pass(&feeds[0], 0, &["a"], Some(complete(&["key"])));
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
    let late_refresh = Batch {
        sent_at: Tick(1_400),
        locks: Vec::new(),
        gone: vec![(Source::fixed("key"), Resource::from("a"))],
    };
    feeds[0].accept(late_refresh);
    feeds[0].end(complete(&["key"]), now(1_600));
    let page = inventory.page(&InventoryQuery::default(), now(1_600)).unwrap();
    assert_eq!(page.locks[0].waiter_count, Reported::Value(3));
}

#[test]
fn a_lock_that_a_late_page_lists_again_is_read_again() {
    // Freed during a scan; a page requested before the refresh lists it, as it was or acquired again. It is listed
    // until the next reading. A page requested after the refresh is the later reading.
    let (inventory, feeds) = inventory(&["one"]);
    let batch = |at: i64, names: &[&str], gone: &[&str]| Batch {
        sent_at: Tick(at),
        locks: names
            .iter()
            .map(|name| observed(name.as_bytes(), "key", &healthy(), at))
            .collect(),
        gone: gone
            .iter()
            .map(|name| (Source::fixed("key"), Resource::from(*name)))
            .collect(),
    };
    let due = |at| feeds[0].due_rechecks(now(at)).names;
    let count = |at| {
        let page = inventory.page(&InventoryQuery::default(), now(at)).unwrap();
        page.locks.len()
    };
    feed_pass(&feeds[0], 0, &["a", "b"], Some(complete(&["key"])));
    feeds[0].begin(now(1_000));
    feeds[0].receive(batch(1_500, &[], &["a", "b"]), Tick(1_510));
    feeds[0].receive(batch(1_100, &["a"], &[]), Tick(1_600));
    feeds[0].receive(batch(1_550, &["b"], &[]), Tick(1_600));
    assert_eq!(due(1_600), [(Source::fixed("key"), Resource::from("a"))]);
    feeds[0].end(complete(&["key"]), now(1_650));
    assert_eq!(count(1_650), 2, "a held lock is never hidden");
    feeds[0].receive(batch(1_700, &[], &["a"]), Tick(1_710));
    assert_eq!((count(1_710), due(1_710)), (1, Vec::new()));
    // The readings before a scan are older than every page of it.
    feed_pass(&feeds[0], 3_000, &["a", "b"], Some(complete(&["key"])));
    assert_eq!((count(3_000), due(3_000)), (2, Vec::new()));
}

#[test]
fn a_shared_name_is_listed_once_per_source_in_every_order() {
    // Pages of one row, so that each page ends between rows of one name; the sources are
    // unsorted.
    let sources = ["key", "hash", "a later one"];
    let (inventory, feeds) = inventory(&["one", "two"]);
    for feed in &feeds {
        feed.begin(now(0));
        let held = |source: &&str| observed(b"same", source, &healthy(), 0);
        let locks = sources.iter().map(held).collect();
        feed.accept(Batch {
            sent_at: Tick(0),
            locks,
            gone: Vec::new(),
        });
        feed.end(complete(&sources), now(0));
    }
    for key in SortKey::ALL {
        for descending in [false, true] {
            let mut query = InventoryQuery {
                sort: Sort { key, descending },
                limit: 1,
                ..InventoryQuery::default()
            };
            let mut seen = Vec::new();
            loop {
                let page = inventory.page(&query, now(0)).unwrap();
                seen.extend(
                    page.locks
                        .into_iter()
                        .map(|lock| (lock.id.backend, lock.id.source)),
                );
                query.cursor = page.next_cursor;
                if query.cursor.is_none() {
                    break;
                }
            }
            let listed = seen.len();
            seen.sort();
            seen.dedup();
            assert_eq!((listed, seen.len()), (6, 6), "{key:?}, descending: {descending}");
        }
    }
}

#[test]
fn a_name_in_two_sources_requires_a_source() {
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
    feeds[0].end(complete(&["key", "mutex"]), now(0));
    let ask = |source: Option<&str>| {
        let source = source.map(|name| Source::parse(name).unwrap());
        inventory.find_lock(&name("one"), source.as_ref(), "a", now(0))
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
    // An invalid cursor, and one of another sort.
    let (inventory, feeds) = inventory(&["one"]);
    feed_pass(&feeds[0], 0, &["a", "b"], Some(complete(&["key"])));
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

#[test]
fn a_resync_counts_only_changes_without_a_notification() {
    // Two locks vanish from the list while the watch is live; one notification is late, the
    // other missing.
    let info = BackendInfo {
        name: name("coord"),
        kind: BackendKind::Etcd,
        address: "127.0.0.1".to_owned(),
        poll_interval_ms: 2_000,
        capabilities: Vec::new(),
        traits: BackendTraits {
            watches_every_change: true,
            ..BackendTraits::default()
        },
    };
    let inventory = Inventory::new(vec![info]);
    let safety = Safety {
        class: SafetyClass::Correctness,
        why: "consensus".into(),
    };
    let feed = inventory
        .feed(&name("coord"), now(0), move |_| (safety.clone(), 1_000))
        .unwrap();
    feed.watching(domain::backend::WatchState::Live);
    feed_pass(&feed, 0, &["a", "b", "c"], Some(complete(&["key"])));
    feed_pass(&feed, 2_000, &["c"], Some(complete(&["key"])));
    feed.refreshed(&[(Source::fixed("key"), Resource::from("a"))], now(2_100));
    let differences = |at| inventory.backends(now(at))[0].relist_differences;
    assert_eq!(differences(2_100), 0);
    feed_pass(&feed, 4_000, &["c"], Some(complete(&["key"])));
    assert_eq!(differences(4_000), 1);
}

#[test]
fn an_outage_is_queued_when_its_backend_is_observed_again() {
    // Polled every 2 s: observed again after 4 s, after 4.5 s, and after 60 s, of which 56 s are
    // an outage.
    let (inventory, feeds) = inventory(&["one"]);
    inventory.journal().open();
    let mut outages = Vec::new();
    for at in [0, 4_000, 8_500, 68_500] {
        feed_pass(&feeds[0], at, &["a"], Some(complete(&["key"])));
        outages.extend(inventory.journal().take().outages);
    }
    let spans: Vec<(i64, i64)> = outages
        .iter()
        .map(|outage| (outage.began.timestamp_millis(), outage.ended.timestamp_millis()))
        .collect();
    let epoch = now(0).wall_at(Tick(0)).timestamp_millis();
    assert_eq!(spans, [(epoch + 12_500, epoch + 68_500)]);
}
