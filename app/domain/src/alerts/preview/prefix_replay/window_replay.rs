//! Replay of the window of one prefix: evaluates it whenever an entry enters or leaves it.

use super::super::next_evaluation;
use super::super::preview_output::{FiringNumber, PreviewOutput};
use crate::alerts::evaluate::{EvaluationResult, Subject};
use crate::alerts::holdings::Entry;
use crate::alerts::prefix_window::PrefixWindow;
use crate::alerts::rule::Rule;
use crate::alerts::state_machine::{AlertPhase, AlertTransition, ConditionResult, step};
use crate::alerts::window_conditions::{evaluate_window, window_sentence};
use crate::names::BackendName;

/// Backend and template.
pub(super) type PrefixName<'a> = (&'a BackendName, &'a str);

#[derive(Clone)]
pub(super) struct SlidingWindow {
    window: PrefixWindow,
    refusals: Refusals,
    /// An entry was added and is not yet evaluated.
    due_at: Option<i64>,
    /// Earliest next evaluation: after the last one, or at the end of a gap.
    not_before: i64,
    /// Time of the last measurement.
    measured_at: i64,
    measure: i64,
    phase: Option<AlertPhase>,
    sign: ConditionResult,
    firing: Option<FiringNumber>,
}

/// Refused acquires of the whole preview, oldest first, and the range of them in the window.
#[derive(Clone, Default)]
struct Refusals {
    all: Vec<(i64, i64)>,
    entered: usize,
    left: usize,
    times: i64,
}

impl Refusals {
    fn slide(&mut self, now: i64, window_ms: i64) {
        while let Some((_, times)) = self.all.get(self.entered).filter(|(at, _)| *at <= now) {
            self.times = self.times.saturating_add(*times);
            self.entered += 1;
        }
        while let Some((_, times)) = self.oldest().filter(|(at, _)| *at <= now - window_ms) {
            self.times = self.times.saturating_sub(times);
            self.left += 1;
        }
    }

    /// Time at which the next one enters or leaves.
    fn next_change(&self, window_ms: i64) -> Option<i64> {
        let enters = self.all.get(self.entered).map(|(at, _)| *at);
        let leaves = self.oldest().map(|(at, _)| at + window_ms);
        enters.into_iter().chain(leaves).min()
    }

    /// The oldest one in the window.
    fn oldest(&self) -> Option<(i64, i64)> {
        self.all
            .get(self.left)
            .copied()
            .filter(|_| self.left < self.entered)
    }
}

impl SlidingWindow {
    pub(super) fn new(rule: &Rule, from: i64) -> Self {
        Self {
            window: PrefixWindow::new(&rule.condition),
            refusals: Refusals::default(),
            due_at: None,
            not_before: next_evaluation(from),
            measured_at: from,
            measure: 0,
            phase: None,
            sign: ConditionResult::Clear,
            firing: None,
        }
    }

    /// Adds refusals that are not older than those before them.
    pub(super) fn refused(&mut self, all: Vec<(i64, i64)>) {
        self.refusals.all.extend(all);
    }

    /// Removes refusals since a time. Those of them that were evaluated are added again.
    pub(super) fn forget_refused(&mut self, since: i64) {
        let all = &mut self.refusals.all;
        all.truncate(all.partition_point(|(at, _)| *at < since));
    }

    /// The entries without the state of the alert.
    pub(super) fn into_entries(self) -> PrefixWindow {
        self.window
    }

    pub(super) fn add(
        &mut self,
        rule: &Rule,
        name: PrefixName<'_>,
        at: i64,
        entry: Entry,
        preview: &mut PreviewOutput,
    ) {
        if !self.window.accepts(entry) {
            return;
        }
        let due_at = next_evaluation(at);
        self.advance(rule, name, due_at - 1, preview);
        self.window.add(at, entry);
        self.due_at = Some(due_at);
    }

    /// The next evaluation whose result may differ.
    fn next_change(&self, rule: &Rule) -> Option<i64> {
        let leaves = self.window.next_change();
        let refusals = self.refusals.next_change(self.window.window_ms());
        let timed = self.phase.and_then(|phase| phase.due(self.sign, rule.timing));
        let moments = [self.due_at, leaves, refusals, timed];
        let next = moments.into_iter().flatten().min()?;
        Some(next_evaluation(next).max(self.not_before))
    }

    /// Runs every evaluation up to `limit`.
    pub(super) fn advance(
        &mut self,
        rule: &Rule,
        name: PrefixName<'_>,
        limit: i64,
        preview: &mut PreviewOutput,
    ) {
        while let Some(now) = self.next_change(rule).filter(|next| *next <= limit) {
            self.slide(now);
            self.evaluate(rule, name, now, preview);
        }
    }

    fn slide(&mut self, now: i64) {
        self.window.slide(now);
        self.refusals.slide(now, self.window.window_ms());
        self.due_at = None;
        self.not_before = now + 1;
    }

    fn evaluate(&mut self, rule: &Rule, name: PrefixName<'_>, now: i64, preview: &mut PreviewOutput) {
        preview.evaluated();
        self.draw_until(now, preview);
        let refused = self.refusals.times;
        let verdict = evaluate_window(&rule.condition, &self.window, refused);
        let sign = if verdict.is_above {
            ConditionResult::Holds
        } else {
            ConditionResult::Clear
        };
        let (phase, change) = step(self.phase, sign, rule.timing, now);
        match (change, self.firing) {
            (Some(AlertTransition::Fired), _) => {
                let found = || EvaluationResult {
                    rule: 0,
                    subject: Subject::Prefix {
                        backend: name.0.clone(),
                        prefix: name.1.to_owned(),
                    },
                    owner: None,
                    holding: String::new(),
                    measure: verdict.measure,
                    why: window_sentence(&rule.condition, &self.window, refused, verdict.measure),
                };
                self.firing = Some(preview.fired(now, found));
            }
            (Some(AlertTransition::Resolved), Some(firing)) => preview.resolved(firing, now),
            _ => {}
        }
        (self.phase, self.sign, self.measure) = (phase, sign, verdict.measure);
        preview.measured(now, self.measure);
    }

    /// The last measure applies until now.
    fn draw_until(&mut self, now: i64, preview: &mut PreviewOutput) {
        for at in preview.ends_between(self.measured_at, now) {
            preview.measured(at, self.measure);
        }
        self.measured_at = now;
    }

    /// Nothing fires or resolves in a gap; a pending alert continues after it.
    pub(super) fn gap(
        &mut self,
        rule: &Rule,
        name: PrefixName<'_>,
        (began, ended): (i64, i64),
        preview: &mut PreviewOutput,
    ) {
        self.advance(rule, name, began, preview);
        self.draw_until(began, preview);
        if self.phase.is_some() {
            (self.phase, _) = step(self.phase, ConditionResult::Unknown, rule.timing, began);
        }
        let first = next_evaluation(ended);
        (self.due_at, self.not_before, self.measured_at) = (Some(first), first, first);
    }

    pub(super) fn finish(&mut self, rule: &Rule, name: PrefixName<'_>, to: i64, preview: &mut PreviewOutput) {
        self.advance(rule, name, to - 1, preview);
        self.draw_until(to, preview);
    }
}
