//! The window of one prefix: entries are added and subtracted incrementally, followed by an
//! evaluation.

use std::collections::VecDeque;

use super::super::next_evaluation;
use super::super::preview_track::{FiringNumber, PreviewTrack};
use crate::alerts::condition_kind::ConditionKind;
use crate::alerts::evaluate::{EvaluationResult, Subject};
use crate::alerts::holdings::Entry;
use crate::alerts::rule::Rule;
use crate::alerts::sorted_values::SortedValues;
use crate::alerts::state_machine::{AlertPhase, AlertTransition, ConditionResult, step};
use crate::alerts::window_conditions::{Sums, evaluate_sums, sums_sentence, value_of, window_ms};
use crate::names::BackendName;

/// Backend and template.
pub(super) type PrefixName<'a> = (&'a BackendName, &'a str);

pub(super) struct SlidingWindow {
    window_ms: i64,
    /// Oldest first.
    entries: VecDeque<(i64, Entry)>,
    acquired: i64,
    contended: i64,
    lost: i64,
    values: SortedValues,
    refusals: Refusals,
    /// An entry was added and is not yet evaluated.
    due_at: Option<i64>,
    /// Earliest next evaluation: after the last one, or at the end of a gap.
    not_before: i64,
    /// Time of the last measurement.
    judged_at: i64,
    measure: i64,
    phase: Option<AlertPhase>,
    sign: ConditionResult,
    firing: Option<FiringNumber>,
}

/// Refused acquires of the whole preview, oldest first, and the range of them in the window.
#[derive(Default)]
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
        while let Some((_, times)) = self.all[..self.entered]
            .get(self.left)
            .filter(|(at, _)| *at <= now - window_ms)
        {
            self.times = self.times.saturating_sub(*times);
            self.left += 1;
        }
    }

    /// Time at which the next one enters or leaves.
    fn next_change(&self, window_ms: i64) -> Option<i64> {
        let enters = self.all.get(self.entered).map(|(at, _)| *at);
        let leaves = self.all[..self.entered]
            .get(self.left)
            .map(|(at, _)| at + window_ms);
        enters.into_iter().chain(leaves).min()
    }
}

impl SlidingWindow {
    pub(super) fn new(rule: &Rule, from: i64) -> Self {
        Self {
            window_ms: window_ms(&rule.condition),
            entries: VecDeque::new(),
            acquired: 0,
            contended: 0,
            lost: 0,
            values: SortedValues::default(),
            refusals: Refusals::default(),
            due_at: None,
            not_before: next_evaluation(from),
            judged_at: from,
            measure: 0,
            phase: None,
            sign: ConditionResult::Clear,
            firing: None,
        }
    }

    pub(super) fn refused(&mut self, all: Vec<(i64, i64)>) {
        self.refusals.all = all;
    }

    pub(super) fn add(
        &mut self,
        rule: &Rule,
        name: PrefixName<'_>,
        at: i64,
        entry: Entry,
        board: &mut PreviewTrack,
    ) {
        let kind = rule.condition.kind;
        let is_counted = match kind {
            ConditionKind::Contention => matches!(entry, Entry::Acquired | Entry::Contended),
            ConditionKind::LeaseLosses => entry == Entry::Lost,
            kind => value_of(kind, entry).is_some(),
        };
        if !is_counted {
            return;
        }
        let due_at = next_evaluation(at);
        self.advance(rule, name, due_at - 1, board);
        self.count(kind, entry, 1);
        self.entries.push_back((at, entry));
        self.due_at = Some(due_at);
    }

    fn count(&mut self, kind: ConditionKind, entry: Entry, times: i64) {
        match entry {
            Entry::Acquired => self.acquired += times,
            Entry::Contended => self.contended += times,
            Entry::Lost => self.lost += times,
            Entry::Waited(_) | Entry::Held { .. } => {}
        }
        match value_of(kind, entry) {
            Some(value) if times > 0 => self.values.insert(value),
            Some(value) => self.values.remove(value),
            None => {}
        }
    }

    /// The next evaluation whose result may differ.
    fn next_change(&self, rule: &Rule) -> Option<i64> {
        let leaves = self.entries.front().map(|(at, _)| at + self.window_ms);
        let refusals = self.refusals.next_change(self.window_ms);
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
        board: &mut PreviewTrack,
    ) {
        while let Some(now) = self.next_change(rule).filter(|next| *next <= limit) {
            self.slide(rule.condition.kind, now);
            self.evaluate(rule, name, now, board);
        }
    }

    fn slide(&mut self, kind: ConditionKind, now: i64) {
        while let Some((_, entry)) = self
            .entries
            .front()
            .copied()
            .filter(|(at, _)| *at <= now - self.window_ms)
        {
            self.count(kind, entry, -1);
            self.entries.pop_front();
        }
        self.refusals.slide(now, self.window_ms);
        self.due_at = None;
        self.not_before = now + 1;
    }

    fn evaluate(&mut self, rule: &Rule, name: PrefixName<'_>, now: i64, board: &mut PreviewTrack) {
        board.evaluated();
        self.draw_until(now, board);
        let sums = self.sums();
        let verdict = evaluate_sums(&rule.condition, &sums);
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
                    why: sums_sentence(&rule.condition, &sums, verdict.measure),
                };
                self.firing = Some(board.fired(now, found));
            }
            (Some(AlertTransition::Resolved), Some(firing)) => board.resolved(firing, now),
            _ => {}
        }
        (self.phase, self.sign, self.measure) = (phase, sign, verdict.measure);
        board.measured(now, self.measure);
    }

    fn sums(&self) -> Sums<'_> {
        let ttl_ms = match self.entries.back() {
            Some((_, Entry::Held { ttl_ms, .. })) => *ttl_ms,
            _ => 0,
        };
        Sums {
            acquired: self.acquired,
            contended: self.contended,
            refused: self.refusals.times,
            lost: self.lost,
            values: &self.values,
            ttl_ms,
        }
    }

    /// The last measure applies until now.
    fn draw_until(&mut self, now: i64, board: &mut PreviewTrack) {
        for at in board.ends_between(self.judged_at, now) {
            board.measured(at, self.measure);
        }
        self.judged_at = now;
    }

    /// Nothing fires or resolves in a gap; a pending alert continues after it.
    pub(super) fn gap(
        &mut self,
        rule: &Rule,
        name: PrefixName<'_>,
        (began, ended): (i64, i64),
        board: &mut PreviewTrack,
    ) {
        self.advance(rule, name, began, board);
        self.draw_until(began, board);
        if self.phase.is_some() {
            (self.phase, _) = step(self.phase, ConditionResult::Unknown, rule.timing, began);
        }
        let first = next_evaluation(ended);
        (self.due_at, self.not_before, self.judged_at) = (Some(first), first, first);
    }

    pub(super) fn finish(&mut self, rule: &Rule, name: PrefixName<'_>, to: i64, board: &mut PreviewTrack) {
        self.advance(rule, name, to - 1, board);
        self.draw_until(to, board);
    }
}
