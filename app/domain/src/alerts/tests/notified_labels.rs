//! Labels of an alert from its first notification to its end.

use super::state_machine::{immediate, result};
use crate::alerts::evaluate::{Active, Subject, round};
use crate::alerts::{AlertSeverity, LeftOut, notices};
use crate::notification::{Notice, NoticeStatus};

#[test]
fn a_notified_alert_keeps_its_labels_until_its_end() {
    // While it fires its rule is renamed and its lock gets another owner under the same token; then its severity rises.
    let mut rules = [immediate("orphaned")];
    rules[0].timing.keep_ms = 0;
    rules[0].severity = AlertSeverity::Warning;
    let path = |_: &Subject| String::new();
    let firing = round(&rules, Vec::new(), vec![result(0, "a", "w1")], &|_, _| false, 0);
    let mut active = firing.active;
    let sent = notices(&rules, &active, &[], &LeftOut::default(), &[], &path, 0);
    let first = sent.notices[0].alerts[0].labels.clone();
    active[0].mark_notified(&rules[0], 0);
    rules[0].name = "Renamed".to_owned();
    let news = vec![result(0, "a", "w2")];
    let mut active = round(&rules, active, news, &|_, _| false, 1_000).active;
    assert_eq!(active[0].owner.as_deref(), Some("w2"));
    let sent = notices(&rules, &active, &[], &LeftOut::default(), &[], &path, 1_000);
    assert!(sent.notices.is_empty(), "it is the same alert");
    rules[0].severity = AlertSeverity::Critical;
    let sent = notices(&rules, &active, &[], &LeftOut::default(), &[], &path, 2_000);
    let labels = |notices: &[Notice], status: NoticeStatus| {
        let mut alerts = notices.iter().flat_map(|notice| &notice.alerts);
        let alert = alerts.find(|alert| alert.status == status).unwrap();
        alert.labels.clone()
    };
    assert_eq!(labels(&sent.notices, NoticeStatus::Resolved), first);
    let critical = labels(&sent.notices, NoticeStatus::Firing);
    active[0].mark_notified(&rules[0], 0);
    let over = round(&rules, active, Vec::new(), &|_, _| false, 3_000).over;
    let resolved: Vec<Active> = over.into_iter().map(|(alert, _)| alert).collect();
    let sent = notices(&rules, &[], &resolved, &LeftOut::default(), &[], &path, 3_000);
    assert_eq!(labels(&sent.notices, NoticeStatus::Resolved), critical);
    assert_eq!(
        (&critical["owner"], &critical["alertname"]),
        (&first["owner"], &first["alertname"])
    );
}
