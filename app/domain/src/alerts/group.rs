//! From alerts to notices: one for each group of alerts in which something is new.

use std::collections::BTreeMap;

use super::labels::{Labels, fingerprint, labels};
use super::left_out::LeftOut;
use super::limits::ALERTS_PER_NOTICE_MAX;
use super::machine::Phase;
use super::round::{Active, Subject};
use super::rule::{GroupBy, Rule, RuleId};
use super::silence::Silence;
use crate::notice::{Notice, NoticeAlert, NoticeStatus};

/// Who is to be told what, and what is noted of it.
#[derive(Debug, Default)]
pub struct Told {
    pub notices: Vec<Notice>,
    /// Groups in which nothing is new, and of which more alerts hold than are kept: they may have grown.
    pub storms: Vec<Notice>,
    /// Places in the active alerts of which somebody is told for the first time.
    pub notified: Vec<usize>,
    /// Places in the active alerts that a silence keeps back for the first time, with its id.
    pub suppressed: Vec<(usize, String)>,
}

impl Told {
    /// Whether nothing of it changes the state of an alert.
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
    /// Alerts that hold and are not kept.
    left_out: u64,
}

/// Which groups have news: an alert that fires and of which nobody was told, or one that was told of and is over.
pub fn notices(
    rules: &[Rule],
    active: &[Active],
    resolved: &[Active],
    left_out: &LeftOut,
    silences: &[Silence],
    path: &dyn Fn(&Subject) -> String,
    now: i64,
) -> Told {
    let by_id: BTreeMap<&RuleId, &Rule> = rules.iter().map(|rule| (&rule.id, rule)).collect();
    let mut groups: BTreeMap<String, Group<'_>> = BTreeMap::new();
    let mut told = Told::default();
    for (place, alert) in active.iter().enumerate().filter(|(_, alert)| alert.is_firing()) {
        let Some(rule) = by_id.get(&alert.rule) else {
            continue;
        };
        let labels = labels(rule, alert);
        let silence = silences
            .iter()
            .find(|silence| silence.is_active(now) && silence.matches(&labels));
        if let Some(silence) = silence {
            if !alert.is_notified && alert.silenced_by.as_ref() != Some(&silence.id) {
                told.suppressed.push((place, silence.id.clone()));
            }
            continue;
        }
        let (key, group_labels) = group_of(rule, &labels);
        let group = groups.entry(key).or_default();
        (group.rule, group.labels) = (Some(*rule), group_labels);
        group.is_news |= !alert.is_notified;
        if !alert.is_notified {
            told.notified.push(place);
        }
        group.firing.push((place, alert, labels));
    }
    for alert in resolved.iter().filter(|alert| alert.is_notified) {
        // A rule that was deleted has no words left, but what was told as firing is told as over.
        let Some(rule) = by_id.get(&alert.rule) else {
            continue;
        };
        let labels = labels(rule, alert);
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
            (true, _) => &mut told.notices,
            (false, true) => &mut told.storms,
            (false, false) => continue,
        };
        to.extend(group.notice(key, path, now));
    }
    told
}

fn group_of(rule: &Rule, labels: &Labels) -> (String, Labels) {
    let names = ["alertname", "rule", "severity"].into_iter();
    let names = names.chain(rule.group_by.iter().copied().map(GroupBy::wire));
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
        // What is over first: it is told once only.
        let mut alerts: Vec<NoticeAlert> = resolved
            .chain(firing)
            .map(|(alert, labels, status)| tell(rule, alert, labels, status, path, now))
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

fn tell(
    rule: &Rule,
    alert: &Active,
    labels: &Labels,
    status: NoticeStatus,
    path: &dyn Fn(&Subject) -> String,
    now: i64,
) -> NoticeAlert {
    let runbook = rule.runbook();
    let summary = format!("{}: {}", rule.name, alert.subject.shown());
    let values: BTreeMap<&'static str, String> = BTreeMap::from([
        ("rule", rule.name.clone()),
        ("severity", rule.severity.wire().to_owned()),
        ("subject", alert.subject.shown()),
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
        Phase::Firing { fired_at, .. } => fired_at,
        Phase::Pending { since, .. } => since,
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
