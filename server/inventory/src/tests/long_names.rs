//! Names of the greatest length.

use domain::access::Visible;
use domain::limits::{PREFIX_CHILDREN_BYTES_MAX, RESOURCE_BYTES_MAX};
use domain::names::Resource;
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
