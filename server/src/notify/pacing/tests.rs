//! Messages of a group as their changes are merged.

use super::*;
use std::collections::BTreeMap;
use std::ops::Range;

fn alert(fingerprint: &str, starts_at: i64, ends_at: Option<i64>) -> NoticeAlert {
    NoticeAlert {
        status: ends_at.map_or(NoticeStatus::Firing, |_| NoticeStatus::Resolved),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        starts_at,
        ends_at,
        path: String::new(),
        fingerprint: fingerprint.to_owned(),
    }
}

fn notice(alerts: Vec<NoticeAlert>) -> Notice {
    Notice {
        group: "near_expiry/1".to_owned(),
        receivers: Vec::new(),
        group_labels: BTreeMap::new(),
        alerts,
        truncated: 0,
    }
}

fn merged(sent: Vec<NoticeAlert>, waiting: &[NoticeAlert], now: Vec<NoticeAlert>) -> Option<Notice> {
    let (merged, has_changes) = merge_changes(&sent, waiting, &[], &notice(now));
    has_changes.then_some(merged)
}

fn changes(
    sent: Vec<NoticeAlert>,
    waiting: Vec<NoticeAlert>,
    now: Vec<NoticeAlert>,
) -> Option<Vec<(String, NoticeStatus)>> {
    let entry = |alert: NoticeAlert| (alert.fingerprint, alert.status);
    let merged = merged(sent, &waiting, now)?;
    Some(merged.alerts.into_iter().map(entry).collect())
}

fn numbered(numbers: Range<usize>, ends_at: Option<i64>) -> impl Iterator<Item = NoticeAlert> {
    numbers.map(move |number| alert(&number.to_string(), 50, ends_at))
}

#[test]
fn a_resolved_alert_of_the_waiting_message_is_kept() {
    // One resolved while another fired, then the second resolved and a third fired.
    let sent = vec![alert("a", 50, None)];
    let waiting = vec![alert("a", 50, Some(110)), alert("b", 110, None)];
    let now = vec![alert("b", 110, Some(120)), alert("c", 120, None)];
    let expected = [
        ("a".to_owned(), NoticeStatus::Resolved),
        ("c".to_owned(), NoticeStatus::Firing),
    ];
    assert_eq!(changes(sent, waiting, now).unwrap(), expected);
}

#[test]
fn an_alert_that_is_not_listed_is_not_resolved() {
    // One silenced since; another fires. Then the silenced one resolves.
    let sent = vec![alert("silenced", 50, None)];
    let now = vec![alert("other", 110, None)];
    let firing = |fingerprint: &str| (fingerprint.to_owned(), NoticeStatus::Firing);
    let both = [firing("silenced"), firing("other")];
    assert_eq!(changes(sent, Vec::new(), now).unwrap(), both);
    let sent = vec![alert("silenced", 50, None), alert("other", 110, None)];
    let now = vec![alert("silenced", 50, Some(120)), alert("other", 110, None)];
    let resolved = ("silenced".to_owned(), NoticeStatus::Resolved);
    assert_eq!(
        changes(sent, Vec::new(), now).unwrap(),
        [resolved, firing("other")]
    );
}

#[test]
fn a_waiting_alert_that_is_silenced_stays_in_its_message() {
    // The silenced alert counts as notified: if it were left out of the message, it would not be sent after the silence either.
    let sent = vec![alert("a", 50, None)];
    let waiting = vec![alert("a", 50, None), alert("b", 110, None)];
    let now = vec![alert("a", 50, None), alert("c", 120, None)];
    let firing = ["a", "b", "c"].map(|lock| (lock.to_owned(), NoticeStatus::Firing));
    assert_eq!(changes(sent, waiting, now).unwrap(), firing);
}

#[test]
fn silenced_alerts_do_not_reduce_the_number_of_unlisted_ones() {
    // One of a full list resolves, half of it is silenced since, and fifty more fire.
    let known = numbered(0..ALERTS_PER_NOTICE_MAX, None).collect();
    let end = alert("0", 50, Some(120));
    let fires = numbered(50..ALERTS_PER_NOTICE_MAX + 50, None);
    let now = std::iter::once(end).chain(fires).collect();
    let merged = merged(known, &[], now).unwrap();
    assert_eq!(
        (merged.alerts.len(), merged.truncated),
        (ALERTS_PER_NOTICE_MAX, 50)
    );
    let names: Vec<String> = merged.alerts.into_iter().map(|alert| alert.fingerprint).collect();
    let numbers: Vec<String> = (0..ALERTS_PER_NOTICE_MAX)
        .map(|number| number.to_string())
        .collect();
    assert_eq!(names, numbers);
}

#[test]
fn ends_of_unlisted_alerts_end_no_listed_one() {
    // More alerts that were never listed resolve than a message lists.
    let known: Vec<NoticeAlert> = numbered(0..10, None).collect();
    let ends = numbered(10..2 * ALERTS_PER_NOTICE_MAX, Some(120));
    let now = ends.chain(known.clone()).collect();
    assert_eq!(changes(known, Vec::new(), now), None);
}

#[test]
fn alerts_beyond_a_full_list_are_no_change() {
    let known: Vec<NoticeAlert> = numbered(0..ALERTS_PER_NOTICE_MAX, None).collect();
    let now = numbered(0..ALERTS_PER_NOTICE_MAX + 50, None).collect();
    assert_eq!(changes(known, Vec::new(), now), None);
}

#[test]
fn a_clock_that_was_ahead_delays_by_one_interval_at_most() {
    // The last message, then the waiting one, were written by a server whose clock is an hour ahead.
    let pacing = Pacing {
        growth_factor: 2,
        group_interval_ms: 1_000,
    };
    let last = |at| LastMessage { at, size: 1 };
    assert_eq!(pacing.due(last(3_600_000), None, 0), 1_000);
    assert_eq!(pacing.due(last(0), Some(3_601_000), 500), 1_500);
    assert_eq!(pacing.due(last(0), None, 400), 1_000);
    assert_eq!(pacing.due(last(0), Some(1_000), 400), 1_000);
    assert_eq!(pacing.due(last(0), None, 5_000), 5_000);
}

#[test]
fn changes_that_cancel_each_other_are_not_sent() {
    // An alert fired and resolved while the message waited; one that was sent resolved and fired again.
    let sent = vec![alert("a", 50, None), alert("c", 50, None)];
    let waiting = vec![
        alert("c", 50, Some(115)),
        alert("a", 50, None),
        alert("b", 110, None),
    ];
    let now = vec![
        alert("b", 110, Some(120)),
        alert("a", 50, None),
        alert("c", 120, None),
    ];
    assert_eq!(changes(sent, waiting, now), None);
}

#[test]
fn only_a_group_that_grows_large_does_not_wait() {
    let pacing = Pacing {
        growth_factor: 2,
        group_interval_ms: 1_000,
    };
    let of = |count| notice((0..count).map(|_| alert("a", 0, None)).collect());
    let grown = |count, size| pacing.is_grown(&of(count), LastMessage { at: 0, size });
    assert!(grown(20, 10) && grown(10, 1));
    assert!(!grown(2, 1) && !grown(19, 10));
}
