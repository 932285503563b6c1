//! Counts alerts per group that hold and are beyond the storage limit; notifications report the
//! count.

use std::collections::HashMap;

use super::evaluate::Subject;
use super::labels::{Labels, fingerprint};
use super::rule::{GroupBy, Rule, RuleId};
use crate::history::template::template;

/// Most groups counted separately; alerts of further groups are not counted.
const GROUPS_MAX: usize = 10_000;

/// Key of a group within a rule. Cheaper to build than labels: a storm may include every lock.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Group {
    rule: RuleId,
    backend: Option<String>,
    prefix: Option<String>,
    owner: Option<String>,
}

#[derive(Debug, Default)]
pub struct LeftOut(HashMap<Group, (Labels, u64)>);

impl LeftOut {
    /// Counts one alert. Rules that group per lock are skipped: each group has one alert.
    pub fn add(&mut self, rule: &Rule, subject: &Subject, owner: Option<&str>) {
        let groups_by = |label: GroupBy| rule.group_by.contains(&label);
        if groups_by(GroupBy::Resource) {
            return;
        }
        let group = Group {
            rule: rule.id.clone(),
            backend: groups_by(GroupBy::Backend).then(|| subject.backend().to_string()),
            prefix: groups_by(GroupBy::Prefix).then(|| prefix_of(subject)).flatten(),
            owner: owner.filter(|_| groups_by(GroupBy::Owner)).map(str::to_owned),
        };
        if let Some((_, count)) = self.0.get_mut(&group) {
            *count += 1;
        } else if self.0.len() < GROUPS_MAX {
            let labels = group.labels(rule);
            self.0.insert(group, (labels, 1));
        }
    }

    pub fn merge(&mut self, other: Self) {
        for (group, (labels, count)) in other.0 {
            self.0.entry(group).or_insert((labels, 0)).1 += count;
        }
    }

    /// Counts by fingerprint of the group.
    pub(super) fn by_group(&self) -> HashMap<String, u64> {
        let entry = |(group, (labels, count)): (&Group, &(Labels, u64))| {
            (format!("{}/{}", group.rule, fingerprint(labels)), *count)
        };
        self.0.iter().map(entry).collect()
    }
}

impl Group {
    /// The group's labels, as in a notification.
    fn labels(&self, rule: &Rule) -> Labels {
        let values = [
            ("alertname", Some(rule.name.clone())),
            ("rule", Some(rule.id.to_string())),
            ("severity", Some(rule.severity.as_str().to_owned())),
            ("backend", self.backend.clone()),
            ("prefix", self.prefix.clone()),
            ("owner", self.owner.clone()),
        ];
        let known = values
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)));
        known.collect()
    }
}

fn prefix_of(subject: &Subject) -> Option<String> {
    match subject {
        Subject::Lock(lock) => Some(template(lock.resource.as_bytes())),
        Subject::Prefix { prefix, .. } => Some(prefix.clone()),
        Subject::Backend(_) => None,
    }
}
