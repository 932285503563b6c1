//! One evaluation: what the conditions found, applied to the alerts there were. Pure.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::left_out::LeftOut;
use super::limits::ALERTS_PER_RULE_MAX;
use super::machine::{Change, Phase, Sign, step};
use super::rule::{Rule, RuleId};
use crate::names::{BackendName, LockId};

/// What an alert is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    Lock(LockId),
    Prefix { backend: BackendName, prefix: String },
    Backend(BackendName),
}

impl Subject {
    pub const fn backend(&self) -> &BackendName {
        match self {
            Self::Lock(lock) => &lock.backend,
            Self::Prefix { backend, .. } => backend,
            Self::Backend(backend) => backend,
        }
    }

    /// The name of it, for people.
    pub fn shown(&self) -> String {
        match self {
            Self::Lock(lock) => lock.resource.text(),
            Self::Prefix { prefix, .. } => prefix.clone(),
            Self::Backend(backend) => backend.to_string(),
        }
    }
}

/// A condition holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Which of the rules.
    pub rule: usize,
    pub subject: Subject,
    pub owner: Option<String>,
    /// Which acquisition of the lock; another one is another alert. Empty: it does not matter.
    pub holding: String,
    pub measure: i64,
    /// A sentence.
    pub why: String,
}

/// An alert that is pending or fires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Active {
    /// Of the store; 0: not stored yet.
    pub id: i64,
    pub rule: RuleId,
    pub subject: Subject,
    pub owner: Option<String>,
    pub holding: String,
    pub phase: Phase,
    pub measure: i64,
    pub why: String,
    /// Somebody was told that it fires.
    pub is_notified: bool,
    /// The silence that has counted it.
    pub silenced_by: Option<String>,
}

impl Active {
    pub const fn is_firing(&self) -> bool {
        matches!(self.phase, Phase::Firing { .. })
    }

    /// Since when it fires, or is pending.
    pub const fn since(&self) -> i64 {
        match self.phase {
            Phase::Pending { since, .. } => since,
            Phase::Firing { fired_at, .. } => fired_at,
        }
    }
}

#[derive(Debug, Default)]
pub struct Outcome {
    /// All that is pending or fires now.
    pub active: Vec<Active>,
    /// What is over: resolved, or dropped before it fired.
    pub over: Vec<(Active, Change)>,
    /// Places in `active` whose phase is another than before, new ones among them.
    pub changed: Vec<usize>,
    /// Alerts that there would be and that are not kept.
    pub left_out: LeftOut,
}

type Key<'a> = (&'a RuleId, &'a Subject);

/// Applies what was found. `unknown` tells whether nobody can say now how an alert stands.
pub fn round(
    rules: &[Rule],
    before: Vec<Active>,
    found: Vec<Found>,
    unknown: &dyn Fn(&Rule, &Active) -> bool,
    now: i64,
) -> Outcome {
    let mut news: HashMap<(RuleId, Subject), Found> = HashMap::with_capacity(found.len());
    let mut order = Vec::with_capacity(found.len());
    for one in found {
        let Some(rule) = rules.get(one.rule) else { continue };
        let key = (rule.id.clone(), one.subject.clone());
        if let Entry::Vacant(place) = news.entry(key) {
            order.push(place.key().clone());
            place.insert(one);
        }
    }
    let by_id: HashMap<&RuleId, &Rule> = rules.iter().map(|rule| (&rule.id, rule)).collect();
    let mut outcome = Outcome::default();
    for alert in before {
        outcome.carry_on(&by_id, alert, &mut news, unknown, now);
    }
    let mut counts: HashMap<RuleId, usize> = HashMap::new();
    for alert in &outcome.active {
        *counts.entry(alert.rule.clone()).or_default() += 1;
    }
    for key in order {
        let Some(one) = news.remove(&key) else { continue };
        let count = counts.entry(key.0.clone()).or_default();
        if *count >= ALERTS_PER_RULE_MAX {
            outcome
                .left_out
                .add(&rules[one.rule], &one.subject, one.owner.as_deref());
            continue;
        }
        *count += 1;
        outcome.begin(&rules[one.rule], one, now);
    }
    debug_assert!(is_distinct(&outcome.active));
    outcome
}

fn is_distinct(active: &[Active]) -> bool {
    let keys: HashSet<Key<'_>> = active.iter().map(|alert| (&alert.rule, &alert.subject)).collect();
    keys.len() == active.len()
}

impl Outcome {
    fn carry_on(
        &mut self,
        rules: &HashMap<&RuleId, &Rule>,
        mut alert: Active,
        news: &mut HashMap<(RuleId, Subject), Found>,
        unknown: &dyn Fn(&Rule, &Active) -> bool,
        now: i64,
    ) {
        // A rule that is gone or switched off asks for nothing any more.
        let Some(rule) = rules.get(&alert.rule).filter(|rule| rule.is_enabled) else {
            let change = if alert.is_firing() {
                Change::Resolved
            } else {
                Change::Dropped
            };
            return self.over.push((alert, change));
        };
        let key = (alert.rule.clone(), alert.subject.clone());
        let is_same = news.get(&key).map(|one| one.holding == alert.holding);
        let mut timing = rule.timing;
        let sign = match is_same {
            Some(true) => {
                if let Some(one) = news.remove(&key) {
                    alert.owner = one.owner.or(alert.owner);
                    alert.measure = one.measure;
                    alert.why = one.why;
                }
                Sign::Holds
            }
            // The lock was taken anew, and the new holding is not well either: that is the next alert.
            Some(false) => {
                timing.keep_ms = 0;
                Sign::Clear
            }
            None if unknown(rule, &alert) => Sign::Unknown,
            None => Sign::Clear,
        };
        let (phase, change) = step(Some(alert.phase), sign, timing, now);
        match (phase, change) {
            (Some(phase), _) => {
                if phase != alert.phase {
                    self.changed.push(self.active.len());
                }
                alert.phase = phase;
                self.active.push(alert);
            }
            (None, change) => self.over.push((alert, change.unwrap_or(Change::Dropped))),
        }
    }

    fn begin(&mut self, rule: &Rule, one: Found, now: i64) {
        if let (Some(phase), _) = step(None, Sign::Holds, rule.timing, now) {
            self.changed.push(self.active.len());
            self.active.push(Active {
                id: 0,
                rule: rule.id.clone(),
                subject: one.subject,
                owner: one.owner,
                holding: one.holding,
                phase,
                measure: one.measure,
                why: one.why,
                is_notified: false,
                silenced_by: None,
            });
        }
    }
}
