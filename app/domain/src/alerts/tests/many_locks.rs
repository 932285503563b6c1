//! More locks than a preview tracks at a time.

use super::preview::{H, Now, S, event, feed};
use super::state_machine::rule;
use crate::alerts::Playback;
use crate::lock_detail::EventKind::{Acquired, Released};

const ORDERS: i64 = 150_000;

#[test]
fn names_used_once_do_not_hide_a_lock_that_is_held() {
    // 150,000 orders, each locked once, while `daily` is held repeatedly, at last for long, and
    // `long` throughout.
    let rule = rule("long_held");
    let now = Now(Some("w"));
    let mut playback = Playback::new([&rule], 0, 48 * H);
    let mut hold = |at: i64, name: &str, ms: i64| {
        feed(&mut playback, &now, &event(at, Acquired, name));
        feed(&mut playback, &now, &event(at + ms, Released, name));
    };
    for number in 0..ORDERS {
        let at = 10 * S + number * 1_000;
        hold(at, &format!("order:{number}"), 5);
        if number % 1_000 == 0 {
            hold(at + 10, "daily", 60 * S);
        }
        if number == 10 {
            hold(at, "long", 1);
        }
    }
    let end = 10 * S + ORDERS * 1_000;
    feed(&mut playback, &now, &event(end, Acquired, "long"));
    feed(&mut playback, &now, &event(end, Acquired, "daily"));
    feed(&mut playback, &now, &event(end + 600 * S, Released, "daily"));
    let preview = playback.finish(&now, 48 * H).remove(0);
    assert_eq!(preview.locks, ORDERS.unsigned_abs() + 2);
    let mut fired: Vec<String> = preview
        .firings
        .iter()
        .map(|firing| firing.subject.display_name())
        .collect();
    fired.sort_unstable();
    // By its own p95, which is not evicted; and by the limit of two hours.
    assert_eq!(fired, ["daily", "long"]);
}

#[test]
fn evaluations_per_hold_do_not_grow_with_its_length() {
    // 2,000 locks, each held for three hours: the second at which the threshold is passed is
    // found by bisection.
    let rule = rule("long_held");
    let now = Now(None);
    let mut playback = Playback::new([&rule], 0, 48 * H);
    let locks = 2_000;
    for number in 0..locks {
        feed(
            &mut playback,
            &now,
            &event(number, Acquired, &format!("lock:{number}")),
        );
    }
    for number in 0..locks {
        feed(
            &mut playback,
            &now,
            &event(3 * H + number, Released, &format!("lock:{number}")),
        );
    }
    let preview = playback.finish(&now, 48 * H).remove(0);
    assert_eq!(
        (preview.count, preview.locks),
        (locks.unsigned_abs(), locks.unsigned_abs())
    );
    assert_eq!(preview.firings.len(), 1_000);
    let of_each = preview.evaluations / locks.unsigned_abs();
    assert!(of_each < 60, "{of_each}");
}
