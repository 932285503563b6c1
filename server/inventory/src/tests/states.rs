//! States that depend on more than one reading: long-held across clocks, a decreasing token.

use domain::access::Visible;
use domain::alerts::{Draft, KnownNames, Rule, builtin, parse};
use domain::generation::Generation;
use domain::names::{LockId, Resource, Source};
use domain::reported::Reported;
use domain::state::LockState;
use domain::tick::Tick;
use domain::token::FencingToken;

use super::{Modelled, complete, inventory, name, now, observed};
use crate::{Alerted, Inventory, InventoryWriter, LookUp};
use backends::{Batch, ClockReading, Pass};

fn rule(longer_than: &str) -> Rule {
    let built_in = builtin().into_iter().find(Rule::is_long_held).unwrap();
    let mut draft = Draft::from(&built_in);
    draft
        .with
        .insert("longer_than".to_owned(), longer_than.to_owned());
    let known = KnownNames {
        backends: &[],
        prefix: None,
        receivers: None,
    };
    parse(&draft, &known).unwrap()
}

fn held_lock(acquired_ago_ms: Option<i64>) -> Modelled {
    Modelled {
        remaining_ms: Some(600_000),
        waiters: None,
        acquired_ago_ms,
    }
}

/// One scan that finds `jobs`, by a backend whose clock is `ahead_ms` ahead of ours.
fn pass(feed: &InventoryWriter, at: i64, lock: &Modelled, ahead_ms: i64) {
    feed.begin(now(at));
    feed.accept(Batch {
        sent_at: Tick(at),
        locks: vec![observed(b"jobs", "key", lock, at)],
        gone: Vec::new(),
    });
    let reading = ClockReading {
        backend_now: now(at + ahead_ms).wall,
        our_now: now(at).wall,
        error_ms: 0,
    };
    let end = Pass {
        clock: Reported::Value(reading),
        ..complete(&["key"])
    };
    feed.end(end, now(at));
}

/// On the lock's page, and in the sums of the tree.
fn state(inventory: &Inventory, at: i64) -> LockState {
    let state = match inventory.find_lock(&name("one"), None, "jobs", now(at)) {
        LookUp::Found(lock, _) => lock.state,
        other => panic!("{other:?}"),
    };
    let tree = inventory.prefixes("", &Visible::default(), now(at));
    assert_eq!(tree.states.count(state), 1);
    state
}

#[test]
fn a_backend_clock_ahead_of_ours_does_not_delay_the_state() {
    // Acquired 4 s before the first scan, by a clock that is 10 s ahead; the offset is known at
    // the end of that scan.
    let (inventory, feeds) = inventory(&["one"]);
    inventory.follow_long_held(vec![rule("5s")], Alerted::new());
    for at in [1_000, 1_500] {
        pass(
            &feeds[0],
            at,
            &held_lock(Some(4_000 + (at - 1_000) - 10_000)),
            10_000,
        );
        assert_eq!(state(&inventory, at), LockState::Healthy);
    }
    pass(&feeds[0], 2_500, &held_lock(Some(5_500 - 10_000)), 10_000);
    assert_eq!(state(&inventory, 2_500), LockState::LongHeld);
}

#[test]
fn changed_rules_and_open_alerts_apply_at_once() {
    // No acquisition time: it counts from the first observation, unless an open alert began
    // earlier.
    let (inventory, feeds) = inventory(&["one"]);
    pass(&feeds[0], 0, &held_lock(None), 0);
    pass(&feeds[0], 3_000, &held_lock(None), 0);
    assert_eq!(state(&inventory, 3_000), LockState::Healthy);
    inventory.follow_long_held(vec![rule("2s")], Alerted::new());
    assert_eq!(state(&inventory, 3_000), LockState::LongHeld);
    inventory.follow_long_held(vec![rule("1h")], Alerted::new());
    assert_eq!(state(&inventory, 3_000), LockState::Healthy);
    let lock = LockId {
        backend: name("one"),
        source: Source::parse("key").unwrap(),
        resource: Resource::from("jobs"),
    };
    let alerted = |holding: &str| Alerted::from([(lock.clone(), holding.to_owned())]);
    inventory.follow_long_held(vec![rule("1h")], alerted("oworker-1"));
    assert_eq!(state(&inventory, 3_000), LockState::LongHeld);
    inventory.follow_long_held(vec![rule("1h")], alerted("oworker-2"));
    assert_eq!(state(&inventory, 3_000), LockState::Healthy, "of another holder");
}

#[test]
fn a_listing_older_than_a_refresh_is_no_second_owner() {
    // Within one scan: token 2 by a refresh, then token 1 from a listing that began before it.
    let (inventory, feeds) = inventory(&["one"]);
    let with_token = |token: u64, at: i64| {
        let mut lock = observed(b"jobs", "key", &held_lock(None), at);
        lock.fencing_token = Reported::Value(FencingToken::new(token));
        lock.generation = Reported::Value(Generation::new(format!("g{token}")));
        Batch {
            sent_at: Tick(at),
            locks: vec![lock],
            gone: Vec::new(),
        }
    };
    feeds[0].begin(now(0));
    feeds[0].accept(with_token(2, 100));
    feeds[0].accept(with_token(1, 200));
    feeds[0].end(complete(&["key"]), now(300));
    assert_eq!(state(&inventory, 300), LockState::Healthy);
    feeds[0].begin(now(1_000));
    feeds[0].accept(with_token(2, 1_000));
    feeds[0].end(complete(&["key"]), now(1_100));
    assert_eq!(state(&inventory, 1_100), LockState::Healthy);
    // In the next scan the token is really lower.
    feeds[0].begin(now(2_000));
    feeds[0].accept(with_token(1, 2_000));
    feeds[0].end(complete(&["key"]), now(2_100));
    assert_eq!(state(&inventory, 2_100), LockState::DualOwner);
}

/// A lease of 6 s, renewed every 4 s until 16 s, read every 2 s.
fn read_renewed(feed: &InventoryWriter, at: i64) {
    let lock = Modelled {
        remaining_ms: Some(at.min(16_000) / 4_000 * 4_000 + 6_000 - at),
        ..held_lock(None)
    };
    feed.begin(now(at));
    let mut lock = observed(b"jobs", "key", &lock, at);
    if let domain::observation::Lifetime::Leased { ttl_ms, .. } = &mut lock.lifetime {
        *ttl_ms = Reported::unknown("not reported");
    }
    feed.accept(Batch {
        sent_at: Tick(at),
        locks: vec![lock],
        gone: Vec::new(),
    });
    feed.end(complete(&["key"]), now(at));
}

#[test]
fn a_lock_is_due_for_a_recheck_before_its_state_turns() {
    // Renewals came with 2 s left: with less than 1 s left, at 21 s, it will be near expiry.
    let (inventory, feeds) = inventory(&["one"]);
    for at in (0..=20_000).step_by(2_000) {
        read_renewed(&feeds[0], at);
        assert_eq!(state(&inventory, at), LockState::Healthy);
    }
    let due = feeds[0].due_rechecks(now(20_900));
    assert!(due.names.is_empty());
    let next = due.next.unwrap();
    assert!((21_000..21_100).contains(&next.0), "{next:?}");
    assert_eq!(feeds[0].due_rechecks(now(next.0)).names.len(), 1);
    read_renewed(&feeds[0], next.0);
    assert_eq!(state(&inventory, next.0), LockState::NearExpiry);
}

#[test]
fn a_lease_expired_since_the_last_scan_is_expired_or_unknown() {
    // A holder that was silent at the last reading has expired; any other may have renewed
    // since.
    let (inventory, feeds) = inventory(&["one"]);
    let read = |at: i64, remaining_ms: i64| {
        let lock = Modelled {
            remaining_ms: Some(remaining_ms),
            ..held_lock(None)
        };
        pass(&feeds[0], at, &lock, 0);
    };
    read(0, 12_000);
    read(10_000, 2_000);
    assert_eq!(state(&inventory, 11_999), LockState::NearExpiry);
    assert_eq!(state(&inventory, 12_000), LockState::Expired);
    read(12_100, 4_000);
    assert_eq!(state(&inventory, 16_099), LockState::Healthy);
    assert_eq!(state(&inventory, 16_100), LockState::Unknown);
    let LookUp::Found(lock, _) = inventory.find_lock(&name("one"), None, "jobs", now(16_100)) else {
        panic!("not found");
    };
    assert_eq!(
        lock.cause(),
        "Its lease ran out after the last scan, unless the holder renewed it since."
    );
}
