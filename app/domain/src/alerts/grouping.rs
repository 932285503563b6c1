//! Groups alerts into notifications: one per group with a change.

use std::collections::BTreeMap;

use super::evaluate::{Active, Subject};
use super::labels::{Labels, fingerprint, labels};
use super::omitted_groups::LeftOut;
use super::rule::{AlertSeverity, GroupBy, Rule, RuleId};
use super::silence::Silence;
use super::state_machine::AlertPhase;
use crate::notification::{Notice, NoticeAlert, NoticeStatus};

/// Notifications to send, and the state to store with them.
#[derive(Debug, Default)]
pub struct NotificationRound {
    pub notices: Vec<Notice>,
    /// Unchanged groups of which a receiver may lack alerts: the receivers of the rule changed, or one was added.
    pub rerouted: Vec<Notice>,
    /// Unchanged groups with more alerts than are stored: their count may have grown.
    pub storms: Vec<Notice>,
    /// Indexes of active alerts to mark as notified: news, and those of rerouted groups.
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
    firing: Vec<(&'a Active, Labels)>,
    resolved: Vec<(&'a Active, Labels)>,
    is_news: bool,
    is_rerouted: bool,
    /// Alerts that hold and are not stored.
    left_out: u64,
}

/// Groups by their key.
#[derive(Default)]
struct Groups<'a>(BTreeMap<String, Group<'a>>);

/// A group has a change if an alert fires that was not notified with this severity or a worse
/// one, or if a notified alert ended. A notice has every alert of its group that is stored and not silenced.
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
    let mut groups = Groups::default();
    let mut round = NotificationRound::default();
    for (place, alert) in active.iter().enumerate().filter(|(_, alert)| alert.is_firing()) {
        let Some(rule) = by_id.get(&alert.rule).copied() else {
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
        let (is_news, is_rerouted) = (alert.is_news(rule), alert.is_rerouted(rule));
        if is_news || is_rerouted {
            round.notified.push(place);
        }
        if is_news {
            // The severity of its rule rose: under its earlier label a receiver would keep it firing.
            groups.end(rule, alert);
        }
        let group = groups.group(rule, alert.group_by(rule), &labels);
        group.is_news |= is_news;
        group.is_rerouted |= is_rerouted;
        group.firing.push((alert, labels));
    }
    for alert in resolved {
        // A removed rule is among the rules, as a disabled one.
        if let Some(rule) = by_id.get(&alert.rule).copied() {
            groups.end(rule, alert);
        }
    }
    for (key, count) in left_out.by_group() {
        if let Some(group) = groups.0.get_mut(&key) {
            group.left_out = count;
        }
    }
    for (key, group) in groups.0 {
        let to = match (group.is_news, group.is_rerouted, group.left_out > 0) {
            (true, _, _) => &mut round.notices,
            (false, true, _) => &mut round.rerouted,
            (false, false, true) => &mut round.storms,
            (false, false, false) => continue,
        };
        to.extend(group.notice(key, path, now));
    }
    round
}

/// The labels of an alert. Once notified they stay, also when its rule gets another name or its lock another owner. Its
/// severity only rises: a rule that becomes less severe does not make it another alert.
pub fn notified_labels(rule: &Rule, alert: &Active) -> Labels {
    let severity = alert
        .notified
        .map_or(rule.severity, |notified| notified.min(rule.severity));
    labels_with(rule, alert, severity)
}

fn labels_with(rule: &Rule, alert: &Active, severity: AlertSeverity) -> Labels {
    let first = alert.notified_labels.clone();
    let mut labels = first.unwrap_or_else(|| labels(rule, alert));
    labels.insert("severity".to_owned(), severity.as_str().to_owned());
    labels
}

/// Fingerprint of its last notification, if it was notified.
pub fn notified_fingerprint(rule: &Rule, alert: &Active) -> Option<String> {
    let severity = alert.notified?;
    Some(fingerprint(&labels_with(rule, alert, severity)))
}

/// Key of the group that an alert with these labels belongs to, and the labels that the group
/// shares: the group of its last notification, even if its rule groups by other labels by now.
pub fn group_of(rule: &Rule, alert: &Active, labels: &Labels) -> (String, Labels) {
    group_by(rule, alert.group_by(rule), labels)
}

fn group_by(rule: &Rule, by: &[GroupBy], labels: &Labels) -> (String, Labels) {
    let names = ["alertname", "rule", "severity"].into_iter();
    let names = names.chain(by.iter().copied().map(GroupBy::as_str));
    let group: Labels = names
        .filter_map(|name| Some((name.to_owned(), labels.get(name)?.clone())))
        .collect();
    (format!("{}/{}", rule.id, fingerprint(&group)), group)
}

impl<'a> Groups<'a> {
    fn group(&mut self, rule: &'a Rule, by: &[GroupBy], labels: &Labels) -> &mut Group<'a> {
        let (key, group_labels) = group_by(rule, by, labels);
        let group = self.0.entry(key).or_default();
        (group.rule, group.labels) = (Some(rule), group_labels);
        group
    }

    /// The end of an alert that was notified, in the group and under the labels of its last notification.
    fn end(&mut self, rule: &'a Rule, alert: &'a Active) {
        let Some(severity) = alert.notified else {
            return;
        };
        let labels = labels_with(rule, alert, severity);
        let group = self.group(rule, alert.notified_group_by(rule), &labels);
        group.is_news = true;
        group.resolved.push((alert, labels));
    }
}

impl Group<'_> {
    fn notice(self, key: String, path: &dyn Fn(&Subject) -> String, now: i64) -> Option<Notice> {
        let rule = self.rule?;
        let firing = self
            .firing
            .iter()
            .map(|(alert, labels)| (*alert, labels, NoticeStatus::Firing));
        let resolved = self
            .resolved
            .iter()
            .map(|(alert, labels)| (*alert, labels, NoticeStatus::Resolved));
        let alerts = resolved
            .chain(firing)
            .map(|(alert, labels, status)| notify_group(rule, alert, labels, status, path, now));
        Some(Notice {
            group: key,
            receivers: rule.receivers.clone(),
            group_labels: self.labels,
            alerts: alerts.collect(),
            truncated: self.left_out,
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
