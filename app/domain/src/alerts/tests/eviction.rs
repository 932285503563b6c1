//! Eviction: names that are used once do not grow memory without bound, and names that come
//! later are still learnt.

use super::state_machine::lock;
use crate::alerts::baseline::Baseline;
use crate::history::HistoryEvent;
use crate::lock_detail::EventKind;

fn event(at: i64, kind: EventKind, name: &str) -> HistoryEvent {
    let id = lock(name);
    HistoryEvent {
        at,
        kind,
        backend: id.backend,
        source: id.source,
        resource: id.resource,
        owner: None,
        token: None,
        ttl_ms: Some(30_000),
        stale_after_ms: None,
        not_before: None,
        waiters: None,
        waited_ms: None,
        run: None,
        is_sampled: false,
    }
}

fn hold(past: &mut Baseline, at: i64, name: &str, ms: i64) {
    past.apply(&event(at, EventKind::Acquired, name));
    past.apply(&event(at + ms, EventKind::Released, name));
}

#[test]
fn memory_per_lock_is_bounded_to_64_holds() {
    // Fails if memory grows while the same names recur.
    let mut past = Baseline::default();
    let id = lock("daily");
    for number in 0..100 {
        hold(&mut past, number * 100, "daily", 90);
    }
    assert_eq!(past.p95_ms(&id), Some(90));
    for number in 100..164 {
        hold(&mut past, number * 100, "daily", 5);
    }
    assert_eq!(past.p95_ms(&id), Some(5), "the 64 before are forgotten");
    assert_eq!(past.locks[&id].holds.room(), (64, 64));
    let (day, years) = (86_400_000, 20);
    for number in 0..64 {
        hold(&mut past, (1 + number) * 400 * day * years, "daily", 365 * day);
    }
    assert_eq!(
        past.p95_ms(&id),
        Some(i64::from(u32::MAX - 1)),
        "seven weeks or more"
    );
}

#[test]
fn eviction_keeps_used_locks_and_admits_new_ones() {
    // 150,000 orders, each locked once, while `daily` is held repeatedly and `long` is held
    // throughout. Fails if memory grows or if a full table rejects new names.
    let mut past = Baseline::default();
    hold(&mut past, 0, "early", 5);
    past.apply(&event(1, EventKind::Acquired, "long"));
    for number in 0..150_000_i64 {
        hold(&mut past, 10 + number * 10, &format!("order:{number}"), 5);
        if number % 1_000 == 0 {
            hold(&mut past, 10 + number * 10, "daily", 7);
        }
        assert!(past.locks.len() <= 100_000);
    }
    let at = 3_000_000;
    for round in 0..20 {
        hold(&mut past, at + round * 100, "new", 9);
    }
    assert_eq!(past.p95_ms(&lock("new")), Some(9));
    assert_eq!(past.p95_ms(&lock("daily")), Some(7));
    assert!(past.locks[&lock("long")].holdings.is_open());
}

#[test]
fn long_names_are_limited_by_their_bytes() {
    // 2,000 names of 64 KiB, each locked once: some 128 MB. `daily` is held repeatedly.
    let mut past = Baseline::default();
    let long = "n".repeat(64 * 1024);
    for number in 0..2_000_i64 {
        hold(&mut past, number * 10, &format!("{number}:{long}"), 5);
        if number % 100 == 0 {
            hold(&mut past, number * 10, "daily", 7);
        }
        assert!(past.locks.len() <= 512, "at {number}");
    }
    assert_eq!(past.p95_ms(&lock("daily")), Some(7));
}
