//! Alerts by notification group: counts, the worst alert, firings of the last hour; and the firing history of each rule.

use std::collections::{BTreeMap, BTreeSet};

use app::pages::alerts::alert_filter::AlertFilter;
use app::pages::alerts::data::{
    AlertGroup, AlertMember, AlertsData, FLAPPING_MIN, FLAPPING_MS, GroupState, HISTORY_MS, RECENT_BARS,
    RECENT_MS, RuleHistory,
};
use domain::alerts::{AlertSeverity, Labels, Rule, group_of};
use domain::escape::visible;

use crate::alerts::{EndedFiring, OpenAlert};

/// Groups of one page.
const GROUPS_MAX: usize = 100;
/// Alerts of an expanded group.
const MEMBERS_MAX: usize = 100;
/// Names may have 64 KiB, and each is in the labels of several controls.
const NAME_CHARS_MAX: usize = 1_000;
/// Choices of the prefix filter.
const PREFIXES_MAX: usize = 50;

pub(super) struct Grouping<'a> {
    pub(super) open: &'a [OpenAlert],
    pub(super) ended: &'a [EndedFiring],
    pub(super) filter: &'a AlertFilter,
    pub(super) may_act: bool,
    pub(super) now: i64,
}

struct Group<'a> {
    labels: Labels,
    /// Worst first.
    open: Vec<&'a OpenAlert>,
    ended: Vec<&'a EndedFiring>,
}

impl Grouping<'_> {
    /// The parts of the page's data that follow from groups.
    pub(super) fn data(&self) -> AlertsData {
        let groups = self.groups();
        let mut data = AlertsData {
            history: self.history(),
            ..AlertsData::default()
        };
        self.fill_choices(&mut data);
        let mut shown = Vec::new();
        for (key, group) in &groups {
            let state = group.state(self.now);
            let rule = &group.worst().rule;
            data.states[index(&GroupState::ALL, state)] += 1;
            data.severities[index(&AlertSeverity::ALL, rule.severity)] += 1;
            data.alerts += group.open.len() as u64;
            if self.filter.shows(state) && self.filter.has(rule.severity) && self.matches_filter(group) {
                shown.push(self.row(key, group, state));
            }
        }
        data.states[index(&GroupState::ALL, GroupState::Resolved)] =
            u32::try_from(self.ended.len()).unwrap_or(u32::MAX);
        shown.sort_by_key(|row: &AlertGroup| (row.state, row.severity, row.since));
        data.more = shown.len().saturating_sub(GROUPS_MAX) as u64;
        shown.truncate(GROUPS_MAX);
        data.groups = shown;
        data
    }

    fn groups(&self) -> BTreeMap<String, Group<'_>> {
        let mut groups: BTreeMap<String, Group<'_>> = BTreeMap::new();
        for open in self.open {
            let (key, labels) = group_of(&open.rule, &open.kept.alert, &open.labels);
            let group = groups.entry(key).or_insert_with(|| Group {
                labels,
                open: Vec::new(),
                ended: Vec::new(),
            });
            group.open.push(open);
        }
        for ended in self.ended {
            if let Some(group) = groups.get_mut(&ended.group) {
                group.ended.push(ended);
            }
        }
        for group in groups.values_mut() {
            // The longest firing one is the worst.
            group.open.sort_by_key(|open| {
                let alert = &open.kept.alert;
                (
                    !alert.is_firing(),
                    open.is_silenced,
                    open.kept.acked.is_some(),
                    alert.since(),
                )
            });
        }
        groups
    }

    fn fill_choices(&self, data: &mut AlertsData) {
        let (mut rules, mut backends, mut prefixes) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        for open in self.open {
            rules.insert(open.rule.id.to_string(), open.rule.name.clone());
            backends.insert(open.kept.alert.subject.backend().to_string());
            prefixes.extend(open.labels.get("prefix").cloned());
        }
        data.rules = rules.into_iter().collect();
        data.backends = backends.into_iter().collect();
        data.prefixes = prefixes.into_iter().take(PREFIXES_MAX).collect();
    }

    /// Whether any alert of the group matches the filter.
    fn matches_filter(&self, group: &Group<'_>) -> bool {
        group.open.iter().any(|open| self.alert_matches(open))
    }

    fn alert_matches(&self, open: &OpenAlert) -> bool {
        let filter = self.filter;
        let (alert, q) = (&open.kept.alert, filter.q.to_lowercase());
        let has = |text: &str| text.to_lowercase().contains(&q);
        let name = alert.subject.display_name();
        (filter.rule.is_empty() || filter.rule == open.rule.id.as_str())
            && (filter.backend.is_empty() || filter.backend == alert.subject.backend().as_str())
            && (filter.prefix.is_empty()
                || name.starts_with(&filter.prefix)
                || open.labels.get("prefix") == Some(&filter.prefix))
            && (q.is_empty()
                || has(&name)
                || has(&alert.why)
                || has(&open.rule.name)
                || alert.owner.as_deref().is_some_and(has))
    }

    fn row(&self, key: &str, group: &Group<'_>, state: GroupState) -> AlertGroup {
        let (worst, firing) = (group.worst(), group.firing().count());
        let rule = &worst.rule;
        let members = group.open.iter().filter(|open| self.alert_matches(open));
        let members = members.take(MEMBERS_MAX).map(|open| self.member(open));
        let members = if self.filter.is_open(key) {
            members.collect()
        } else {
            Vec::new()
        };
        let is_acked = |open: &&&OpenAlert| open.kept.acked.is_some();
        let acked = group.firing().find(is_acked);
        let acked = acked.filter(|_| state == GroupState::Acknowledged);
        AlertGroup {
            key: key.to_owned(),
            state,
            severity: rule.severity,
            rule: rule.name.clone(),
            rule_path: worst
                .is_rule_visible
                .then(|| format!("/alerts/rules/{}", rule.id)),
            labels: shared_labels(&group.labels),
            condition: rule.condition.sentence(),
            runbook: rule.runbook(),
            alerts: u32::try_from(group.open.len()).unwrap_or(u32::MAX),
            firing: u32::try_from(firing).unwrap_or(u32::MAX),
            recent: group.recent(self.now),
            since: worst.kept.alert.since(),
            for_ms: rule.timing.for_ms,
            worst: self.member(worst),
            members,
            receivers: rule.receivers.clone(),
            acked: acked.and_then(|open| {
                let (at, by, _) = open.kept.acked.as_ref()?;
                Some((by.clone(), *at))
            }),
            changes: u32::try_from(group.changes(self.now)).unwrap_or(u32::MAX),
            silence_path: super::silences::new_path(&group.labels, ""),
            may_act: self.may_act,
        }
    }

    fn member(&self, open: &OpenAlert) -> AlertMember {
        AlertMember {
            silence_path: super::silences::new_path(&open.labels, ""),
            ..super::silences::member(open)
        }
    }

    /// Rules that fired, by severity and name.
    fn history(&self) -> Vec<RuleHistory> {
        let from = self.now - HISTORY_MS;
        let mut rules: BTreeMap<(AlertSeverity, &str), Vec<(i64, i64)>> = BTreeMap::new();
        let add = |rule: &'_ Rule, began: i64, ended: i64| -> Option<(AlertSeverity, String, (i64, i64))> {
            (ended >= from).then(|| (rule.severity, rule.name.clone(), (began.max(from), ended)))
        };
        let ended = self.ended.iter();
        let ended = ended.filter_map(|firing| add(&firing.rule, firing.fired_at, firing.ended_at));
        let all: Vec<_> = ended.collect();
        let open = self.open.iter().filter(|open| open.kept.alert.is_firing());
        let open: Vec<_> = open
            .filter_map(|open| add(&open.rule, open.kept.alert.since(), self.now))
            .collect();
        for (severity, name, span) in all.iter().chain(&open) {
            rules.entry((*severity, name.as_str())).or_default().push(*span);
        }
        let rows = rules.into_iter().map(|((severity, name), spans)| RuleHistory {
            rule: name.to_owned(),
            severity,
            count: u32::try_from(spans.len()).unwrap_or(u32::MAX),
            firings: merge_spans(spans),
        });
        rows.collect()
    }
}

impl Group<'_> {
    fn worst(&self) -> &OpenAlert {
        self.open[0]
    }

    fn firing(&self) -> impl Iterator<Item = &&OpenAlert> {
        self.open.iter().filter(|open| open.kept.alert.is_firing())
    }

    fn changes(&self, now: i64) -> usize {
        let recent = self
            .ended
            .iter()
            .filter(|firing| firing.ended_at >= now - FLAPPING_MS);
        recent.count()
    }

    fn state(&self, now: i64) -> GroupState {
        let firing: Vec<&&OpenAlert> = self.firing().collect();
        if firing.is_empty() {
            let is_silenced = self.open.iter().all(|open| open.is_silenced);
            return if is_silenced {
                GroupState::Silenced
            } else {
                GroupState::Pending
            };
        }
        if firing.iter().all(|open| open.is_silenced) {
            return GroupState::Silenced;
        }
        let is_handled = |open: &&&OpenAlert| open.is_silenced || open.kept.acked.is_some();
        if firing.iter().all(is_handled) {
            return GroupState::Acknowledged;
        }
        if self.changes(now) >= FLAPPING_MIN {
            GroupState::Flapping
        } else {
            GroupState::Firing
        }
    }

    /// Alerts that fired at some time in each bar.
    fn recent(&self, now: i64) -> Vec<u32> {
        let step = RECENT_MS / RECENT_BARS as i64;
        let ended = self.ended.iter().map(|firing| (firing.fired_at, firing.ended_at));
        let open = self.firing().map(|open| (open.kept.alert.since(), now));
        let spans: Vec<(i64, i64)> = ended.chain(open).collect();
        let bars = (0..RECENT_BARS as i64).map(|bar| {
            let from = now - RECENT_MS + bar * step;
            let fires = |(began, end): &&(i64, i64)| *began < from + step && *end >= from;
            u32::try_from(spans.iter().filter(fires).count()).unwrap_or(u32::MAX)
        });
        bars.collect()
    }
}

fn index<T: PartialEq>(all: &[T], item: T) -> usize {
    all.iter().position(|other| *other == item).unwrap_or(0)
}

/// Values of the group's own labels: those of the rule are shown by its name.
fn shared_labels(labels: &Labels) -> String {
    let shown_labels = labels
        .iter()
        .filter(|(name, _)| !["alertname", "rule", "severity"].contains(&name.as_str()));
    let values: Vec<String> = shown_labels.map(|(_, value)| shown_name(value)).collect();
    values.join(", ")
}

/// For pages and the labels of their controls: hidden characters are written out, and a long name loses its start.
pub(super) fn shown_name(name: &str) -> String {
    let name = visible(name);
    let last = name.char_indices().rev().nth(NAME_CHARS_MAX - 1);
    let start = last.map_or(0, |(start, _)| start);
    if start == 0 {
        return name.into_owned();
    }
    format!("\u{2026}{}", &name[start..])
}

/// Overlapping and adjacent intervals as one.
fn merge_spans(mut spans: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    spans.sort_unstable();
    let mut merged: Vec<(i64, i64)> = Vec::new();
    for (began, ended) in spans {
        match merged.last_mut() {
            Some(last) if began <= last.1 => last.1 = last.1.max(ended),
            _ => merged.push((began, ended)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_firings_are_one_interval() {
        let spans = vec![(5, 9), (1, 3), (3, 4), (8, 12)];
        assert_eq!(merge_spans(spans), [(1, 4), (5, 12)]);
    }

    #[test]
    fn names_in_labels_of_controls_are_visible_and_limited() {
        assert_eq!(shown_name("jobs/a"), "jobs/a");
        assert_eq!(shown_name("a\u{202e}b"), "a\\u{202e}b");
        let long = shown_name(&format!("{}end", "é".repeat(30_000)));
        assert_eq!(long.chars().count(), NAME_CHARS_MAX + 1);
        assert!(long.starts_with('…') && long.ends_with("éend"), "{long}");
    }
}
