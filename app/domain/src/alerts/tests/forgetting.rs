//! Names that are used once come without end: what is remembered of them is bounded, and those that come later are not
//! worse off for it.

use super::played::lock;
use crate::alerts::past::Past;
use crate::detail::EventKind;
use crate::history::HistoryEvent;

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
        waiters: None,
        waited_ms: None,
        run: None,
        is_sampled: false,
    }
}

fn hold(past: &mut Past, at: i64, name: &str, ms: i64) {
    past.apply(&event(at, EventKind::Acquired, name));
    past.apply(&event(at + ms, EventKind::Released, name));
}

#[test]
fn after_names_without_end_a_new_lock_is_learnt_and_a_used_one_is_not_forgotten() {
    // A quarter of a million orders, each locked once, while `daily` is held again and again and `long` goes on all the
    // time. Would catch a memory that grows, and one that is full and takes nobody in any more.
    let mut past = Past::default();
    hold(&mut past, 0, "early", 5);
    past.apply(&event(1, EventKind::Acquired, "long"));
    for number in 0..250_000_i64 {
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
    assert!(past.locks[&lock("long")].open.is_some());
}
