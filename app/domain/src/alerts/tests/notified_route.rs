//! Group, receivers and severity of an alert whose rule changes while it fires.

use super::state_machine::{immediate, result};
use crate::alerts::evaluate::{Active, Subject, round};
use crate::alerts::limits::ALERTS_PER_NOTICE_MAX;
use crate::alerts::{
    AlertSeverity, GroupBy, LeftOut, Matcher, NotificationRound, Pattern, Rule, Silence, notices,
    notified_fingerprint,
};
use crate::notification::NoticeStatus;

fn notify(rules: &[Rule], active: &[Active], resolved: &[Active]) -> NotificationRound {
    let path = |_: &Subject| String::new();
    notices(rules, active, resolved, &LeftOut::default(), &[], &path, 0)
}

/// Alerts that fire and are notified, and the round that does it.
fn notified(rules: &[Rule], count: usize) -> (Vec<Active>, NotificationRound) {
    let found = (0..count).map(|number| result(0, &format!("jobs/{number}"), "w"));
    let mut active = round(rules, Vec::new(), found.collect(), &|_, _| false, 0).active;
    let sent = notify(rules, &active, &[]);
    for place in &sent.notified {
        active[*place].mark_notified(&rules[0], 0);
    }
    (active, sent)
}

#[test]
fn a_change_of_receivers_is_passed_on_once_and_is_no_news() {
    let mut rules = [immediate("orphaned")];
    let (mut active, sent) = notified(&rules, 1);
    assert_eq!((sent.notices.len(), sent.rerouted.len()), (1, 0));
    assert!(notify(&rules, &active, &[]).rerouted.is_empty());
    rules[0].receivers = vec!["pager".to_owned()];
    let sent = notify(&rules, &active, &[]);
    assert_eq!((sent.notices.len(), sent.rerouted.len()), (0, 1));
    assert_eq!(sent.rerouted[0].receivers, ["pager"]);
    assert_eq!(sent.notified, [0]);
    active[0].mark_notified(&rules[0], 0);
    let sent = notify(&rules, &active, &[]);
    assert!(sent.is_nothing() && sent.rerouted.is_empty());
}

#[test]
fn an_added_receiver_reroutes_firing_alerts_once() {
    // It is added while a silence matches the alert, which fires for longer.
    let rules = [immediate("orphaned")];
    let (mut active, _) = notified(&rules, 1);
    active[0].compare_receivers(0);
    assert!(notify(&rules, &active, &[]).rerouted.is_empty());
    active[0].compare_receivers(1);
    let path = |_: &Subject| String::new();
    let silenced = notices(&rules, &active, &[], &LeftOut::default(), &[silence()], &path, 0);
    assert!(silenced.is_nothing() && silenced.rerouted.is_empty());
    active[0].compare_receivers(1);
    let sent = notify(&rules, &active, &[]);
    assert_eq!((sent.notices.len(), sent.rerouted.len()), (0, 1));
    assert_eq!(sent.notified, [0]);
    active[0].mark_notified(&rules[0], 1);
    active[0].compare_receivers(1);
    let sent = notify(&rules, &active, &[]);
    assert!(sent.is_nothing() && sent.rerouted.is_empty());
}

#[test]
fn an_alert_ends_in_the_group_in_which_it_fired() {
    // The rule groups by owner since; its next alert does.
    let mut rules = [immediate("orphaned")];
    let (mut active, fired) = notified(&rules, 1);
    rules[0].group_by = vec![GroupBy::Owner];
    rules[0].receivers = vec!["pager".to_owned()];
    assert_eq!(
        notify(&rules, &active, &[]).rerouted[0].group,
        fired.notices[0].group
    );
    active[0].mark_notified(&rules[0], 0);
    let ended = notify(&rules, &[], &active);
    assert_eq!(ended.notices[0].group, fired.notices[0].group);
    let (_, next) = notified(&rules, 1);
    assert_ne!(next.notices[0].group, fired.notices[0].group);
}

#[test]
fn an_alert_ends_with_the_severity_that_was_notified() {
    // The severity of its rule rises in the second in which it ends.
    let mut rules = [immediate("orphaned")];
    rules[0].severity = AlertSeverity::Warning;
    let (active, fired) = notified(&rules, 1);
    rules[0].severity = AlertSeverity::Critical;
    let ended = notify(&rules, &[], &active);
    let (start, end) = (&fired.notices[0], &ended.notices[0]);
    assert_eq!(end.alerts[0].status, NoticeStatus::Resolved);
    assert_eq!(
        (&end.group, &end.alerts[0].labels),
        (&start.group, &start.alerts[0].labels)
    );
    let fingerprint = notified_fingerprint(&rules[0], &active[0]);
    assert_eq!(fingerprint.as_ref(), Some(&start.alerts[0].fingerprint));
}

#[test]
fn an_earlier_severity_ends_in_its_own_group() {
    let mut rules = [immediate("orphaned")];
    rules[0].severity = AlertSeverity::Warning;
    let (active, fired) = notified(&rules, 1);
    rules[0].severity = AlertSeverity::Critical;
    let risen = notify(&rules, &active, &[]);
    let of_group = |group: &str| risen.notices.iter().find(|notice| notice.group == group);
    let end = of_group(&fired.notices[0].group).unwrap();
    assert_eq!((end.alerts.len(), end.status()), (1, NoticeStatus::Resolved));
    let start = risen
        .notices
        .iter()
        .find(|notice| notice.group != end.group)
        .unwrap();
    assert_eq!((start.alerts.len(), start.status()), (1, NoticeStatus::Firing));
}

#[test]
fn a_notice_has_every_end_of_its_group() {
    // More than a message lists: what is listed depends on what its receiver was sent.
    let rules = [immediate("orphaned")];
    let count = ALERTS_PER_NOTICE_MAX + 50;
    let (active, fired) = notified(&rules, count);
    assert_eq!(
        (fired.notices[0].alerts.len(), fired.notices[0].truncated),
        (count, 0)
    );
    assert_eq!(notify(&rules, &[], &active).notices[0].alerts.len(), count);
}

/// For an hour from 5 s on.
fn silence() -> Silence {
    Silence {
        id: "s".to_owned(),
        matchers: vec![Matcher {
            label: "rule",
            value: Pattern::parse("orphaned").unwrap(),
        }],
        starts_at: 5_000,
        ends_at: 3_605_000,
        comment: "a migration".to_owned(),
        by: "op".to_owned(),
        suppressed: 0,
    }
}

#[test]
fn a_silence_begins_at_once_whatever_the_clock_of_its_server() {
    let rules = [immediate("orphaned")];
    let active = round(&rules, Vec::new(), vec![result(0, "jobs", "w")], &|_, _| false, 0).active;
    let path = |_: &Subject| String::new();
    let sent = notices(&rules, &active, &[], &LeftOut::default(), &[silence()], &path, 0);
    assert!(sent.notices.is_empty());
    assert_eq!(sent.suppressed, [(0, "s".to_owned())]);
}
