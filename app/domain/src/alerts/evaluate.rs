//! One evaluation round: applies the results of the conditions to the existing alerts. Pure.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::labels::{Labels, labels};
use super::limits::ALERTS_PER_RULE_MAX;
use super::lock_conditions::may_be_same_holding;
use super::omitted_groups::LeftOut;
use super::rule::{AlertSeverity, GroupBy, Rule, RuleId};
use super::state_machine::{AlertPhase, AlertTransition, ConditionResult, step};
use crate::names::{BackendName, LockId};

/// Subject of an alert.
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

    pub fn display_name(&self) -> String {
        match self {
            Self::Lock(lock) => lock.resource.text(),
            Self::Prefix { prefix, .. } => prefix.clone(),
            Self::Backend(backend) => backend.to_string(),
        }
    }
}

/// A condition that holds for one subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvaluationResult {
    /// Index of the rule.
    pub rule: usize,
    pub subject: Subject,
    pub owner: Option<String>,
    /// Identifies the acquisition of the lock; another acquisition is another alert. Empty: not
    /// significant, or not known from this reading.
    pub holding: String,
    pub measure: i64,
    /// One sentence.
    pub why: String,
}

/// Where the firing of an alert was notified. It ends there, also after a change of its rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotifiedRoute {
    /// Names of receivers; empty: all receivers.
    pub receivers: Vec<String>,
    pub group_by: Vec<GroupBy>,
    /// Number of receivers that had been added to the installation by then.
    #[serde(default)]
    pub receivers_added: i64,
}

/// A pending or firing alert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Active {
    /// Id in the store; 0 until stored.
    pub id: i64,
    pub rule: RuleId,
    pub subject: Subject,
    /// Prefix of its rule when the condition held last: it was found among these names. Empty: among all.
    pub rule_prefix: String,
    pub owner: Option<String>,
    pub holding: String,
    pub phase: AlertPhase,
    pub measure: i64,
    pub why: String,
    /// Severity of the last notification of its firing, if there was one.
    pub notified: Option<AlertSeverity>,
    /// Labels of that notification. Later ones use them too, because under others a receiver would keep it firing.
    pub notified_labels: Option<Labels>,
    /// `None`: not notified, or by a version that did not store it.
    pub notified_route: Option<NotifiedRoute>,
    /// A receiver was added after that notification. Not stored: see [`compare_receivers`](Self::compare_receivers).
    pub has_new_receivers: bool,
    /// The silence that has already counted it.
    pub silenced_by: Option<String>,
}

impl Active {
    pub const fn is_firing(&self) -> bool {
        matches!(self.phase, AlertPhase::Firing { .. })
    }

    pub const fn is_notified(&self) -> bool {
        self.notified.is_some()
    }

    /// Whether its firing was never notified, or as less severe.
    pub(super) fn is_news(&self, rule: &Rule) -> bool {
        self.notified.is_none_or(|severity| rule.severity < severity)
    }

    /// Compares the number of receivers added so far with that at its last notification. When it is read from the store.
    pub fn compare_receivers(&mut self, receivers_added: i64) {
        let route = self.notified_route.as_ref();
        self.has_new_receivers = route.is_some_and(|route| route.receivers_added != receivers_added);
    }

    /// Records that its firing is notified. `receivers_added`: the number of receivers added so far.
    pub fn mark_notified(&mut self, rule: &Rule, receivers_added: i64) {
        let route = NotifiedRoute {
            receivers: rule.receivers.clone(),
            group_by: self.group_by(rule).to_vec(),
            receivers_added,
        };
        if self.notified_labels.is_none() {
            self.notified_labels = Some(labels(rule, self));
        }
        if self.is_news(rule) {
            self.notified = Some(rule.severity);
        }
        self.notified_route = Some(route);
        self.has_new_receivers = false;
    }

    /// Whether its rule has other receivers than at its last notification, or a receiver was added since.
    pub(super) fn is_rerouted(&self, rule: &Rule) -> bool {
        let route = self.notified_route.as_ref();
        self.has_new_receivers || route.is_some_and(|route| route.receivers != rule.receivers)
    }

    /// Grouping of its next notification: its group stays the same until its end, or until its severity rises.
    pub(super) fn group_by<'a>(&'a self, rule: &'a Rule) -> &'a [GroupBy] {
        if self.is_news(rule) {
            &rule.group_by
        } else {
            self.notified_group_by(rule)
        }
    }

    /// Grouping of its last notification.
    pub(super) fn notified_group_by<'a>(&'a self, rule: &'a Rule) -> &'a [GroupBy] {
        let route = self.notified_route.as_ref();
        route.map_or(rule.group_by.as_slice(), |route| route.group_by.as_slice())
    }

    /// Start of the current phase.
    pub const fn since(&self) -> i64 {
        match self.phase {
            AlertPhase::Pending { since, .. } => since,
            AlertPhase::Firing { fired_at, .. } => fired_at,
        }
    }
}

#[derive(Debug, Default)]
pub struct RoundOutcome {
    /// Alerts that are pending or firing after the round.
    pub active: Vec<Active>,
    /// Alerts that ended: resolved, or dropped before they fired.
    pub over: Vec<(Active, AlertTransition)>,
    /// Indexes in `active` of alerts whose phase changed, including new ones.
    pub changed: Vec<usize>,
    /// Alerts beyond the limit, counted and not stored.
    pub left_out: LeftOut,
}

type Key<'a> = (&'a RuleId, &'a Subject);

/// Applies the results. `unknown` returns true for subjects whose state cannot be determined
/// now.
pub fn round(
    rules: &[Rule],
    before: Vec<Active>,
    found: Vec<EvaluationResult>,
    unknown: &dyn Fn(&Rule, &Active) -> bool,
    now: i64,
) -> RoundOutcome {
    let mut results: HashMap<(RuleId, Subject), EvaluationResult> = HashMap::with_capacity(found.len());
    let mut order = Vec::with_capacity(found.len());
    for result in found {
        let Some(rule) = rules.get(result.rule) else {
            continue;
        };
        let key = (rule.id.clone(), result.subject.clone());
        if let Entry::Vacant(vacant) = results.entry(key) {
            order.push(vacant.key().clone());
            vacant.insert(result);
        }
    }
    let by_id: HashMap<&RuleId, &Rule> = rules.iter().map(|rule| (&rule.id, rule)).collect();
    let mut outcome = RoundOutcome::default();
    for alert in before {
        outcome.update_existing(&by_id, alert, &mut results, unknown, now);
    }
    let mut counts: HashMap<RuleId, usize> = HashMap::new();
    for alert in &outcome.active {
        *counts.entry(alert.rule.clone()).or_default() += 1;
    }
    for key in order {
        let Some(result) = results.remove(&key) else {
            continue;
        };
        let count = counts.entry(key.0.clone()).or_default();
        if *count >= ALERTS_PER_RULE_MAX {
            outcome
                .left_out
                .add(&rules[result.rule], &result.subject, result.owner.as_deref());
            continue;
        }
        *count += 1;
        outcome.begin(&rules[result.rule], result, now);
    }
    debug_assert!(is_distinct(&outcome.active));
    outcome
}

fn is_distinct(active: &[Active]) -> bool {
    let keys: HashSet<Key<'_>> = active.iter().map(|alert| (&alert.rule, &alert.subject)).collect();
    keys.len() == active.len()
}

impl RoundOutcome {
    fn update_existing(
        &mut self,
        rules: &HashMap<&RuleId, &Rule>,
        mut alert: Active,
        results: &mut HashMap<(RuleId, Subject), EvaluationResult>,
        unknown: &dyn Fn(&Rule, &Active) -> bool,
        now: i64,
    ) {
        // A deleted or disabled rule has no `for` and no keep-firing time.
        let Some(rule) = rules.get(&alert.rule).filter(|rule| rule.is_enabled) else {
            let change = if alert.is_firing() {
                AlertTransition::Resolved
            } else {
                AlertTransition::Dropped
            };
            return self.over.push((alert, change));
        };
        let key = (alert.rule.clone(), alert.subject.clone());
        let is_same = results
            .get(&key)
            .map(|result| may_be_same_holding(&result.holding, &alert.holding));
        let mut timing = rule.timing;
        let sign = match is_same {
            Some(true) => {
                if let Some(result) = results.remove(&key) {
                    alert.owner = result.owner.or(alert.owner);
                    alert.measure = result.measure;
                    alert.why = result.why;
                    alert.rule_prefix = rule.scope.prefix.as_str().to_owned();
                }
                ConditionResult::Holds
            }
            // The lock was acquired again and the condition holds for the new holding too: a
            // new alert.
            Some(false) => {
                timing.keep_ms = 0;
                ConditionResult::Clear
            }
            None if unknown(rule, &alert) => ConditionResult::Unknown,
            None => ConditionResult::Clear,
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
            (None, change) => self
                .over
                .push((alert, change.unwrap_or(AlertTransition::Dropped))),
        }
    }

    fn begin(&mut self, rule: &Rule, result: EvaluationResult, now: i64) {
        if let (Some(phase), _) = step(None, ConditionResult::Holds, rule.timing, now) {
            self.changed.push(self.active.len());
            self.active.push(Active {
                id: 0,
                rule: rule.id.clone(),
                subject: result.subject,
                rule_prefix: rule.scope.prefix.as_str().to_owned(),
                owner: result.owner,
                holding: result.holding,
                phase,
                measure: result.measure,
                why: result.why,
                notified: None,
                notified_labels: None,
                notified_route: None,
                has_new_receivers: false,
                silenced_by: None,
            });
        }
    }
}
