//! How many alerts of each group hold beside those that are kept: the count that a notification of a storm tells.

use std::collections::HashMap;

use super::labels::{Labels, fingerprint};
use super::round::Subject;
use super::rule::{GroupBy, Rule, RuleId};
use crate::history::template::template;

/// Groups that are counted apart; alerts of more groups are not counted.
const GROUPS_MAX: usize = 10_000;

/// What tells groups of one rule apart. Cheaper to make than labels: a storm may be of every lock.
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
    /// Counts one. Where each lock is a group of its own there is nothing to add it to.
    pub fn add(&mut self, rule: &Rule, subject: &Subject, owner: Option<&str>) {
        let by = |by: GroupBy| rule.group_by.contains(&by);
        if by(GroupBy::Resource) {
            return;
        }
        let group = Group {
            rule: rule.id.clone(),
            backend: by(GroupBy::Backend).then(|| subject.backend().to_string()),
            prefix: by(GroupBy::Prefix).then(|| prefix_of(subject)).flatten(),
            owner: owner.filter(|_| by(GroupBy::Owner)).map(str::to_owned),
        };
        if let Some((_, count)) = self.0.get_mut(&group) {
            *count += 1;
        } else if self.0.len() < GROUPS_MAX {
            let labels = group.labels(rule);
            self.0.insert(group, (labels, 1));
        }
    }

    /// Adds what another counted.
    pub fn merge(&mut self, other: Self) {
        for (group, (labels, count)) in other.0 {
            self.0.entry(group).or_insert((labels, 0)).1 += count;
        }
    }

    /// By the names of the groups.
    pub(super) fn by_group(&self) -> HashMap<String, u64> {
        let named = |(group, (labels, count)): (&Group, &(Labels, u64))| {
            (format!("{}/{}", group.rule, fingerprint(labels)), *count)
        };
        self.0.iter().map(named).collect()
    }
}

impl Group {
    /// The group's labels, as a notification has them.
    fn labels(&self, rule: &Rule) -> Labels {
        let values = [
            ("alertname", Some(rule.name.clone())),
            ("rule", Some(rule.id.to_string())),
            ("severity", Some(rule.severity.wire().to_owned())),
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
