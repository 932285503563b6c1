//! Windows of the live rules on prefixes: one window per rule and prefix, so that each rule
//! counts the names in its scope.
//!
//! A rule whose window or scope changes needs the past again: a preview's replay provides it.

use std::collections::{HashMap, HashSet};

use super::baseline::{Baseline, PREFIXES_MAX};
use super::condition_kind::{ConditionKind, SubjectKind};
use super::evaluate::{EvaluationResult, Subject};
use super::holdings::Entry;
use super::pattern::Pattern;
use super::prefix_window::{PrefixWindow, window_ms};
use super::rule::Rule;
use super::window_conditions::{evaluate_window, window_sentence};
use crate::names::BackendName;

/// Backend and template.
pub(super) type PrefixKey = (BackendName, String);

/// Windows of all prefixes for rules with the same [key](WindowKey).
#[derive(Debug, Clone)]
pub struct RuleWindows {
    key: WindowKey,
    rule: Rule,
    windows: HashMap<PrefixKey, PrefixWindow>,
    /// Entries of prefixes beyond the limit.
    uncounted: u64,
}

/// Determines which entries a window has; thresholds do not.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WindowKey {
    kind: ConditionKind,
    window_ms: i64,
    backends: Vec<BackendName>,
    prefix: Pattern,
}

impl From<&Rule> for WindowKey {
    fn from(rule: &Rule) -> Self {
        Self {
            kind: rule.condition.kind,
            window_ms: window_ms(&rule.condition),
            backends: rule.scope.backends.clone(),
            prefix: rule.scope.prefix.clone(),
        }
    }
}

impl RuleWindows {
    /// For a rule without a past.
    pub fn new(rule: &Rule) -> Self {
        Self {
            key: rule.into(),
            rule: rule.clone(),
            windows: HashMap::new(),
            uncounted: 0,
        }
    }

    /// The windows at the end of a replay.
    pub(super) fn of_replay(rule: &Rule, windows: HashMap<PrefixKey, PrefixWindow>, uncounted: u64) -> Self {
        Self {
            windows,
            uncounted,
            ..Self::new(rule)
        }
    }

    /// Adds entries of a lock, whose prefix has this key.
    pub(super) fn add(&mut self, prefix: &PrefixKey, name: &[u8], at: i64, entries: &[Entry]) {
        let empty = || PrefixWindow::new(&self.rule.condition);
        let scope = &self.rule.scope;
        if !scope.has_backend(&prefix.0) || !scope.prefix.covers(name) {
            return;
        }
        for entry in entries {
            if let Some(window) = self.windows.get_mut(prefix) {
                if window.accepts(*entry) {
                    window.add(at, *entry);
                }
            } else if empty().accepts(*entry) {
                if self.windows.len() >= PREFIXES_MAX {
                    self.windows.retain(|_, window| !window.is_empty());
                }
                if self.windows.len() >= PREFIXES_MAX {
                    self.uncounted += 1;
                    continue;
                }
                let mut window = empty();
                window.add(at, *entry);
                self.windows.insert(prefix.clone(), window);
            }
        }
    }
}

impl Baseline {
    /// Drops windows that no rule needs, and entries that have left theirs. Returns the rules
    /// that have no windows yet.
    pub fn follow_windows<'r>(&mut self, rules: &'r [Rule], now: i64) -> Vec<&'r Rule> {
        let needed: Vec<&Rule> = rules.iter().filter(|rule| has_windows(rule)).collect();
        let is_needed =
            |windows: &RuleWindows| needed.iter().any(|rule| windows.key == WindowKey::from(*rule));
        self.windows.retain(is_needed);
        let all = self.windows.iter_mut();
        all.flat_map(|windows| windows.windows.values_mut())
            .for_each(|window| window.slide(now));
        let mut missing: Vec<&Rule> = Vec::new();
        for rule in needed {
            let key = WindowKey::from(rule);
            let is_known = self.windows.iter().any(|windows| windows.key == key)
                || missing.iter().any(|other| key == WindowKey::from(*other));
            if !is_known {
                missing.push(rule);
            }
        }
        missing
    }

    /// Adds windows that were missing; the past that they contain ends where this one does.
    pub fn add_windows(&mut self, windows: impl IntoIterator<Item = RuleWindows>) {
        for windows in windows {
            self.windows.retain(|known| known.key != windows.key);
            self.windows.push(windows);
        }
    }

    /// Entries that no window counts, because there are too many prefixes.
    pub fn uncounted(&self) -> u64 {
        self.windows.iter().map(|windows| windows.uncounted).sum()
    }
}

/// Whether the rule is evaluated on windows of prefixes.
fn has_windows(rule: &Rule) -> bool {
    rule.is_enabled && rule.condition.kind.about() == SubjectKind::Prefix
}

/// Every prefix for which the rule's condition holds now; `None` if its past is not known yet.
pub fn evaluate_windows(
    index: usize,
    rule: &Rule,
    past: &mut Baseline,
    now: i64,
) -> Option<Vec<EvaluationResult>> {
    let key = WindowKey::from(rule);
    let Baseline { windows, refused, .. } = past;
    let windows = windows.iter_mut().find(|windows| windows.key == key)?;
    let since = now - key.window_ms;
    // Refusals have a template and no name: a rule on one tenant of many counts none.
    let refused_of = |prefix: &PrefixKey| {
        let counts = refused
            .get(prefix)
            .filter(|_| key.prefix.covers(prefix.1.as_bytes()));
        let count = counts.map_or(0, |counts| counts.between(since, now));
        i64::try_from(count).unwrap_or(i64::MAX / 2_000)
    };
    let mut found = Vec::new();
    let mut evaluate = |prefix: &PrefixKey, window: &PrefixWindow| {
        let refused = refused_of(prefix);
        let verdict = evaluate_window(&rule.condition, window, refused);
        if verdict.is_above {
            found.push(EvaluationResult {
                rule: index,
                subject: Subject::Prefix {
                    backend: prefix.0.clone(),
                    prefix: prefix.1.clone(),
                },
                owner: None,
                holding: String::new(),
                measure: verdict.measure,
                why: window_sentence(&rule.condition, window, refused, verdict.measure),
            });
        }
    };
    for (prefix, window) in &mut windows.windows {
        window.slide(now);
        evaluate(prefix, window);
    }
    // Prefixes with refusals only.
    let empty = PrefixWindow::new(&rule.condition);
    let known: HashSet<&PrefixKey> = windows.windows.keys().collect();
    let only_refused = refused.keys().filter(|prefix| !known.contains(*prefix));
    for prefix in only_refused.filter(|prefix| rule.scope.has_backend(&prefix.0)) {
        evaluate(prefix, &empty);
    }
    Some(found)
}
