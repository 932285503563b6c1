//! Cache of previews by the condition of their rule; valid while nothing new is recorded.

use domain::alerts::{Condition, Preview, Rule, RuleScope, Timing};
use parking_lot::Mutex;

use crate::alerts::event_source::ReadPositions;

/// Cached previews: versions of a rule that its author compares.
const KEPT_MAX: usize = 32;
/// Age limit in milliseconds: held locks age without new events.
const AGE_MS_MAX: i64 = 60_000;

#[derive(Default)]
pub(super) struct PreviewCache(Mutex<Vec<Entry>>);

struct Entry {
    key: Key,
    positions: ReadPositions,
    preview: Preview,
}

/// Inputs of a preview; the rule's name and receivers have no influence.
#[derive(PartialEq, Eq)]
pub(super) struct Key {
    condition: Condition,
    scope: RuleScope,
    timing: Timing,
}

impl From<&Rule> for Key {
    fn from(rule: &Rule) -> Self {
        Self {
            condition: rule.condition.clone(),
            scope: rule.scope.clone(),
            timing: rule.timing,
        }
    }
}

impl PreviewCache {
    /// The previews of all these rules, or `None`.
    pub(super) fn get(&self, rules: &[Rule], positions: ReadPositions, now: i64) -> Option<Vec<Preview>> {
        let entries = self.0.lock();
        let of = |rule: &Rule| {
            let key = Key::from(rule);
            let is_it = |entry: &&Entry| {
                entry.key == key && entry.positions == positions && now - entry.preview.to < AGE_MS_MAX
            };
            entries.iter().find(is_it).map(|entry| entry.preview.clone())
        };
        rules.iter().map(of).collect()
    }

    pub(super) fn put(&self, rules: &[Rule], positions: ReadPositions, previews: &[Preview]) {
        let mut entries = self.0.lock();
        for (rule, preview) in rules.iter().zip(previews) {
            let key = Key::from(rule);
            entries.retain(|entry| entry.key != key);
            entries.push(Entry {
                key,
                positions,
                preview: preview.clone(),
            });
        }
        let surplus = entries.len().saturating_sub(KEPT_MAX);
        entries.drain(..surplus);
    }
}
