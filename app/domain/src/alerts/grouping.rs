//! Groups alerts into notifications: one per group with a change.

use std::collections::BTreeMap;

use super::evaluate::{Active, Subject};
use super::labels::{Labels, fingerprint, labels};
use super::limits::ALERTS_PER_NOTICE_MAX;
use super::omitted_groups::LeftOut;
use super::rule::{GroupBy, Rule, RuleId};
use super::silence::Silence;
use super::state_machine::AlertPhase;
use crate::notification::{Notice, NoticeAlert, NoticeStatus};

/// Notifications to send, and the state to store with them.
#[derive(Debug, Default)]
pub struct NotificationRound {
    pub notices: Vec<Notice>,
    /// Unchanged groups with more alerts than are stored: their count may have grown.
    pub storms: Vec<Notice>,
    /// Indexes of active alerts that are notified for the first time.
    pub notified: Vec<usize>,
    /// Indexes of active alerts that a silence suppresses for the first time, with its id.
    pub suppressed: Vec<(usize, String)>,
}

impl NotificationRound {
    /// Whether no alert changes its state.
    pub const fn is_nothing(&self) -> bool {
        self.notices.is_empty() && self.notified.is_empty() && self.suppressed.is_empty()
    }
}

#[derive(Default)]
struct Group<'a> {
    rule: Option<&'a Rule>,
    labels: Labels,
    firing: Vec<(usize, &'a Active, Labels)>,
    resolved: Vec<(&'a Active, Labels)>,
    is_news: bool,
    /// Alerts that hold and are not stored.
    left_out: u64,
}

/// A group has a change if an alert fires that was not notified with this severity or a worse
/// one, or if a notified alert ended.
pub fn notices(
    rules: &[Rule],
    active: &[Active],
    resolved: &[Active],
    left_out: &LeftOut,
    silences: &[Silence],
    path: &dyn Fn(&Subject) -> String,
    now: i64,
) -> NotificationRound {
    let by_id: BTreeMap<&RuleId, &Rule> = rules.iter().map(|rule| (&rule.id, rule)).collect();
    let mut groups: BTreeMap<String, Group<'_>> = BTreeMap::new();
    let mut round = NotificationRound::default();
    for (place, alert) in active.iter().enumerate().filter(|(_, alert)| alert.is_firing()) {
        let Some(rule) = by_id.get(&alert.rule) else {
            continue;
        };
        let labels = notified_labels(rule, alert);
        let silence = silences
            .iter()
            .find(|silence| silence.is_active(now) && silence.matches(&labels));
        if let Some(silence) = silence {
            if !alert.is_notified() && alert.silenced_by.as_ref() != Some(&silence.id) {
                round.suppressed.push((place, silence.id.clone()));
            }
            continue;
        }
        let (key, group_labels) = group_of(rule, &labels);
        let group = groups.entry(key).or_default();
        (group.rule, group.labels) = (Some(*rule), group_labels);
        // Never notified, or as less severe: the severity of its rule rose.
        if alert.notified.is_none_or(|severity| rule.severity < severity) {
            group.is_news = true;
            round.notified.push(place);
            // Under its earlier label an Alertmanager would keep it firing.
            group.resolved.extend(alert.notified.map(|before| {
                let mut labels = labels.clone();
                labels.insert("severity".to_owned(), before.as_str().to_owned());
                (alert, labels)
            }));
        }
        group.firing.push((place, alert, labels));
    }
    for alert in resolved.iter().filter(|alert| alert.is_notified()) {
        // A deleted rule has no texts any more, but alerts notified as firing must be notified
        // as resolved.
        let Some(rule) = by_id.get(&alert.rule) else {
            continue;
        };
        let labels = notified_labels(rule, alert);
        let (key, group_labels) = group_of(rule, &labels);
        let group = groups.entry(key).or_default();
        (group.rule, group.labels, group.is_news) = (Some(*rule), group_labels, true);
        group.resolved.push((alert, labels));
    }
    for (key, count) in left_out.by_group() {
        if let Some(group) = groups.get_mut(&key) {
            group.left_out = count;
        }
    }
    for (key, group) in groups {
        let (is_news, is_storm) = (group.is_news, group.left_out > 0);
        let to = match (is_news, is_storm) {
            (true, _) => &mut round.notices,
            (false, true) => &mut round.storms,
            (false, false) => continue,
        };
        to.extend(group.notice(key, path, now));
    }
    round
}

/// The labels of an alert. Once notified they stay, also when its rule gets another name or its lock another owner. Its
/// severity only rises: a rule that becomes less severe does not make it another alert.
fn notified_labels(rule: &Rule, alert: &Active) -> Labels {
    let first = alert.notified_labels.clone();
    let mut labels = first.unwrap_or_else(|| labels(rule, alert));
    let severity = alert
        .notified
        .map_or(rule.severity, |notified| notified.min(rule.severity));
    labels.insert("severity".to_owned(), severity.as_str().to_owned());
    labels
}

/// Key of the group that an alert of this rule with these labels belongs to, and the labels that
/// the group shares.
pub fn group_of(rule: &Rule, labels: &Labels) -> (String, Labels) {
    let names = ["alertname", "rule", "severity"].into_iter();
    let names = names.chain(rule.group_by.iter().copied().map(GroupBy::as_str));
    let group: Labels = names
        .filter_map(|name| Some((name.to_owned(), labels.get(name)?.clone())))
        .collect();
    (format!("{}/{}", rule.id, fingerprint(&group)), group)
}

impl Group<'_> {
    fn notice(self, key: String, path: &dyn Fn(&Subject) -> String, now: i64) -> Option<Notice> {
        let rule = self.rule?;
        let firing = self
            .firing
            .iter()
            .map(|(_, alert, labels)| (*alert, labels, NoticeStatus::Firing));
        let resolved = self
            .resolved
            .iter()
            .map(|(alert, labels)| (*alert, labels, NoticeStatus::Resolved));
        // Resolved alerts first: they are sent only once.
        let mut alerts: Vec<NoticeAlert> = resolved
            .chain(firing)
            .map(|(alert, labels, status)| notify_group(rule, alert, labels, status, path, now))
            .collect();
        let truncated = alerts.len().saturating_sub(ALERTS_PER_NOTICE_MAX);
        alerts.truncate(ALERTS_PER_NOTICE_MAX);
        Some(Notice {
            group: key,
            receivers: rule.receivers.clone(),
            group_labels: self.labels,
            alerts,
            truncated: self.left_out.saturating_add(truncated as u64),
        })
    }
}

fn notify_group(
    rule: &Rule,
    alert: &Active,
    labels: &Labels,
    status: NoticeStatus,
    path: &dyn Fn(&Subject) -> String,
    now: i64,
) -> NoticeAlert {
    let runbook = rule.runbook();
    let summary = format!("{}: {}", rule.name, alert.subject.display_name());
    let values: BTreeMap<&'static str, String> = BTreeMap::from([
        ("rule", rule.name.clone()),
        ("severity", rule.severity.as_str().to_owned()),
        ("subject", alert.subject.display_name()),
        ("resource", labels.get("resource").cloned().unwrap_or_default()),
        ("backend", alert.subject.backend().to_string()),
        ("prefix", labels.get("prefix").cloned().unwrap_or_default()),
        ("owner", alert.owner.clone().unwrap_or_default()),
        ("why", alert.why.clone()),
        ("runbook", runbook.clone()),
    ]);
    let description = rule
        .template
        .as_ref()
        .map_or_else(|| alert.why.clone(), |template| template.fill(&values));
    let starts_at = match alert.phase {
        AlertPhase::Firing { fired_at, .. } => fired_at,
        AlertPhase::Pending { since, .. } => since,
    };
    NoticeAlert {
        status,
        labels: labels.clone(),
        annotations: BTreeMap::from([
            ("summary".to_owned(), summary),
            ("description".to_owned(), description),
            ("runbook_url".to_owned(), runbook),
        ]),
        starts_at,
        ends_at: (status == NoticeStatus::Resolved).then_some(now),
        path: path(&alert.subject),
        fingerprint: fingerprint(labels),
    }
}
