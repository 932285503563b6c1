//! Names of the greatest length.

use domain::access::Visible;
use domain::limits::{PAGE_BYTES_MAX, PAGE_ROWS_MAX, PREFIX_CHILDREN_BYTES_MAX, RESOURCE_BYTES_MAX};
use domain::names::Resource;
use domain::query::{InventoryQuery, Sort, SortKey};
use domain::tick::Tick;

use super::{Modelled, complete, inventory, name, now, observed};
use backends::Batch;

#[test]
fn recent_events_of_long_names_are_limited_by_their_bytes() {
    // 300 locks of 64 KiB each are acquired: the events of the last ones are stored.
    let (inventory, feeds) = inventory(&["one"]);
    let lock = Modelled {
        remaining_ms: None,
        waiters: None,
        acquired_ago_ms: None,
    };
    let long_name = |number: u64| {
        let mut name = number.to_be_bytes().to_vec();
        name.resize(RESOURCE_BYTES_MAX, b'n');
        name
    };
    for (at, count) in [(0, 0), (2_000, 300)] {
        feeds[0].begin(now(at));
        feeds[0].accept(Batch {
            sent_at: Tick(at),
            locks: (0..count)
                .map(|number| observed(&long_name(number), "key", &lock, at))
                .collect(),
            gone: Vec::new(),
        });
        feeds[0].end(complete(&["key"]), now(at));
    }
    let is_stored = |number| {
        let resource = Resource::from_bytes(&long_name(number));
        inventory
            .recent_events_of(&name("one"), None, &resource)
            .is_some()
    };
    assert!(!is_stored(0) && is_stored(299));
}

#[test]
fn children_with_long_names_are_limited_by_their_bytes() {
    // 100 names of 64 KiB without a separator on each of two backends: those that are left out are counted.
    let (inventory, feeds) = inventory(&["one", "two"]);
    let lock = Modelled {
        remaining_ms: None,
        waiters: None,
        acquired_ago_ms: None,
    };
    let long_name = |number: u8| {
        let mut name = format!("{number:03}").into_bytes();
        name.resize(RESOURCE_BYTES_MAX, b'n');
        name
    };
    for feed in &feeds {
        feed.begin(now(0));
        feed.accept(Batch {
            sent_at: Tick(0),
            locks: (0..100)
                .map(|number| observed(&long_name(number), "key", &lock, 0))
                .collect(),
            gone: Vec::new(),
        });
        feed.end(complete(&["key"]), now(0));
    }
    let tree = inventory.prefixes("", &Visible::default(), now(0));
    let bytes: usize = tree.children.iter().map(|child| child.prefix.len()).sum();
    assert!(bytes <= PREFIX_CHILDREN_BYTES_MAX, "{bytes} bytes");
    let listed = tree.children.len() as u64;
    assert!(
        listed > 1 && tree.children.iter().all(|child| child.locks == 2),
        "{listed}"
    );
    assert_eq!((tree.total, tree.more_locks), (200, 200 - 2 * listed));
}

#[test]
fn pages_of_long_names_are_limited_by_their_bytes() {
    // 50 names of 64 KiB on each of two backends, each name in two sources: every page has a part, and all of them each row
    // once.
    let (inventory, feeds) = inventory(&["one", "two"]);
    let lock = &Modelled {
        remaining_ms: None,
        waiters: None,
        acquired_ago_ms: None,
    };
    let long_name = |number: u8| {
        let mut name = format!("{number:03}").into_bytes();
        name.resize(RESOURCE_BYTES_MAX, b'n');
        name
    };
    // The source that is sorted first has the higher number.
    let sources = ["key", "hash"];
    for feed in &feeds {
        feed.begin(now(0));
        let of_source = |source| (0..50).map(move |number| observed(&long_name(number), source, lock, 0));
        feed.accept(Batch {
            sent_at: Tick(0),
            locks: sources.into_iter().flat_map(of_source).collect(),
            gone: Vec::new(),
        });
        feed.end(complete(&sources), now(0));
    }
    for (key, descending) in [
        (SortKey::Resource, false),
        (SortKey::Resource, true),
        (SortKey::State, true),
    ] {
        let mut query = InventoryQuery {
            sort: Sort { key, descending },
            limit: PAGE_ROWS_MAX,
            ..InventoryQuery::default()
        };
        let mut found = Vec::new();
        loop {
            let page = inventory.page(&query, now(0)).unwrap();
            let bytes = page.locks.iter().map(|lock| lock.id.resource.as_bytes().len());
            assert!(bytes.sum::<usize>() <= PAGE_BYTES_MAX);
            found.extend(page.locks.into_iter().map(|lock| lock.id));
            query.cursor = page.next_cursor;
            if query.cursor.is_none() {
                break;
            }
        }
        let ids: std::collections::HashSet<_> = found.iter().collect();
        assert_eq!((found.len(), ids.len()), (200, 200), "{key:?} {descending}");
    }
}
