//! Previews that were made, by what a rule says: asked for again, they are not made again while nothing new was recorded.

use std::sync::{Mutex, PoisonError};

use domain::alerts::{Condition, Preview, Rule, Scope, Timing};

use crate::alerts::ledger::Marks;

/// Previews that are kept: the versions of a rule between which its author goes back and forth.
const KEPT_MAX: usize = 32;
/// By time alone a lock is held for longer: a preview ends so long ago at most, in milliseconds.
const AGE_MS_MAX: i64 = 60_000;

#[derive(Default)]
pub(super) struct PreviewCache(Mutex<Vec<Entry>>);

struct Entry {
    key: Key,
    marks: Marks,
    preview: Preview,
}

/// What a preview depends on; the name of the rule and its receivers are not in it.
#[derive(PartialEq, Eq)]
struct Key {
    condition: Condition,
    scope: Scope,
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
    /// Of all these rules, or none.
    pub(super) fn get(&self, rules: &[Rule], marks: Marks, now: i64) -> Option<Vec<Preview>> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |rule: &Rule| {
            let key = Key::from(rule);
            let is_it = |entry: &&Entry| {
                entry.key == key && entry.marks == marks && now - entry.preview.to < AGE_MS_MAX
            };
            entries.iter().find(is_it).map(|entry| entry.preview.clone())
        };
        rules.iter().map(of).collect()
    }

    pub(super) fn put(&self, rules: &[Rule], marks: Marks, previews: &[Preview]) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (rule, preview) in rules.iter().zip(previews) {
            let key = Key::from(rule);
            entries.retain(|entry| entry.key != key);
            entries.push(Entry {
                key,
                marks,
                preview: preview.clone(),
            });
        }
        let surplus = entries.len().saturating_sub(KEPT_MAX);
        entries.drain(..surplus);
    }
}
