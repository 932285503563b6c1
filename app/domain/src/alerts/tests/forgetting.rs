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
        stale_after_ms: None,
        not_before: None,
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
fn of_each_lock_the_last_64_holds_are_remembered_and_take_no_more_room() {
    // Would catch a memory that goes on growing while the same names come again and again.
    let mut past = Past::default();
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
    assert_eq!(past.p95_ms(&id), Some(i64::from(u32::MAX)), "seven weeks or more");
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
    assert!(past.locks[&lock("long")].holdings.is_open());
}
