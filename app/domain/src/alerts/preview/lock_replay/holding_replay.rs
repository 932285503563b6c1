//! Replay of one holding: when the condition of a rule begins and stops to hold.

use super::super::lock_table::{LockRef, Span};
use super::super::preview_output::{FiringNumber, PreviewOutput};
use super::super::{PastEvent, last_evaluation, next_evaluation};
use crate::alerts::condition_kind::ConditionKind;
use crate::alerts::evaluate::{EvaluationResult, Subject};
use crate::alerts::limits::EVALUATE_EVERY_MS;
use crate::alerts::lock_conditions::{LockSnapshot, evaluate_lock, lock_sentence};
use crate::alerts::rule::Rule;
use crate::alerts::state_machine::{AlertPhase, AlertTransition, ConditionResult, step};
use crate::alerts::usual_hold_time::HoldTimes;
use crate::diagnosis::{self, CadenceFacts, Facts, LifetimeFacts};
use crate::lock_detail::EventKind;
use crate::renewal_interval::Cadence;
use crate::tick::Tick;

/// Additional delay with which a renewal may be observed, besides the scan times of its
/// backend, in milliseconds.
const SAMPLING_MS: i64 = 250;
/// Renewals of one run that are replayed one by one; the interval is known by then.
const RENEWALS_REPLAYED: u32 = 9;

#[derive(Clone)]
pub(super) struct HoldingReplay {
    /// Evaluated up to this moment.
    at: i64,
    acquired_at: i64,
    ttl_ms: Option<i64>,
    /// Without a TTL: silence longer than this counts as not renewing.
    stale_after_ms: Option<i64>,
    /// The TTL was recorded, not derived from the time left.
    is_ttl_recorded: bool,
    /// Time of the last renewal, or of the acquisition.
    renewed_at: i64,
    renewals: u32,
    cadence: Option<Cadence>,
    phase: Option<AlertPhase>,
    firing: Option<FiringNumber>,
    /// Index of the first gap that is not yet behind it.
    next_gap: usize,
    /// False after a gap, in which it may have been renewed.
    is_deadline_known: bool,
}

/// Inputs of the evaluation of a holding.
pub(super) struct HoldingContext<'a> {
    pub(super) rule: &'a Rule,
    pub(super) lock: &'a LockRef<'a>,
    pub(super) holds: &'a HoldTimes,
    pub(super) owner: &'a str,
}

impl HoldingReplay {
    /// `gaps` are those of its lock so far.
    pub(super) fn from_event(event: &PastEvent<'_>, gaps: &[Span]) -> Self {
        Self {
            at: observed_from(event.at, gaps),
            acquired_at: event.at,
            ttl_ms: event.ttl_ms.or(event.ttl_seen_ms),
            stale_after_ms: event.stale_after_ms,
            is_ttl_recorded: event.ttl_ms.is_some(),
            renewed_at: event.at,
            renewals: 0,
            cadence: None,
            phase: None,
            firing: None,
            next_gap: gaps.len(),
            is_deadline_known: true,
        }
    }

    /// It becomes the recorded holding of its lock: no rule judged it before. The lease is that of the lock, which
    /// `previous` renewed. `gaps` are those of its lock so far.
    pub(super) fn succeed(&mut self, previous: Option<&Self>, at: i64, gaps: &[Span]) {
        self.at = self.at.max(observed_from(at, gaps));
        self.next_gap = gaps.len();
        self.renewed_at = previous.map_or(at, |previous| previous.renewed_at);
        self.is_deadline_known = previous.is_some_and(|previous| previous.knows_deadline_after(gaps));
        if let Some(previous) = previous {
            (self.ttl_ms, self.is_ttl_recorded) = (previous.ttl_ms, previous.is_ttl_recorded);
        }
    }

    /// It may have been renewed in a gap since its last renewal; a renewal in an outage is an event after it.
    fn knows_deadline_after(&self, gaps: &[Span]) -> bool {
        let mut passed = gaps.iter().skip(self.next_gap);
        self.is_deadline_known && passed.all(|gap| gap.is_outage || gap.ended <= self.renewed_at)
    }

    /// The renewal does not belong to the holding before.
    pub(super) fn is_renewed_by(&self, event: &PastEvent<'_>) -> bool {
        event.run.map_or(event.at, |run| run.until) >= self.acquired_at
    }

    /// One row of renewals, evenly spaced from its time on.
    pub(super) fn renew(&mut self, event: &PastEvent<'_>) {
        // If no TTL is recorded, the largest time left that was observed counts as TTL.
        let seen_ms = event
            .ttl_seen_ms
            .max(self.ttl_ms.filter(|_| !self.is_ttl_recorded));
        self.is_ttl_recorded |= event.ttl_ms.is_some();
        self.ttl_ms = event.ttl_ms.or(seen_ms).or(self.ttl_ms);
        let ttl_ms = self.ttl_ms.unwrap_or(0);
        let (count, until) = event
            .run
            .map_or((1, event.at), |run| (run.count.max(1), run.until));
        let mean_interval = match i64::from(count - 1) {
            0 => 0,
            intervals => (until - event.at) / intervals,
        };
        let skipped = count.saturating_sub(RENEWALS_REPLAYED);
        let mut before = self.renewed_at;
        for index in (0..count).filter(|index| *index == 0 || *index >= skipped) {
            let at = match index + 1 == count {
                true => until,
                false => event.at + mean_interval * i64::from(index),
            };
            // The newest intervals count: those left out are as long as those that follow.
            let interval = if index > 0 { mean_interval } else { at - before };
            let low_ms = ttl_ms - interval;
            match &mut self.cadence {
                Some(cadence) => cadence.renewed(Tick(at), low_ms, interval),
                None => self.cadence = Some(Cadence::begin(Tick(at), low_ms, interval)),
            }
            before = at;
        }
        self.renewals = self.renewals.saturating_add(count);
        self.renewed_at = until;
        self.is_deadline_known = true;
        self.at = self.at.max(until);
    }

    /// Derives the deadline, unknown since the last gap, from the expiry of the lease.
    pub(super) fn learn_deadline(&mut self, event: &PastEvent<'_>) {
        if let Some(ttl_ms) = self.ttl_ms.filter(|_| event.kind == EventKind::Expired) {
            self.renewed_at = self.renewed_at.max(event.at - ttl_ms);
            self.is_deadline_known = true;
        }
    }

    pub(super) fn close(&mut self, context: &HoldingContext<'_>, at: i64, preview: &mut PreviewOutput) {
        self.advance(context, at, preview);
        self.resolve(context, at.max(self.at), preview);
    }

    fn resolve(&mut self, context: &HoldingContext<'_>, at: i64, preview: &mut PreviewOutput) {
        if let (Some(AlertPhase::Firing { .. }), Some(firing)) = (self.phase, self.firing) {
            preview.resolved(firing, next_evaluation(at) + context.rule.timing.keep_ms);
        }
    }

    /// Gaps, outages apart, between the last evaluation and now.
    fn next_gap<'g>(&self, context: &HoldingContext<'g>) -> Option<&'g Span> {
        let remaining_gaps = context.lock.gaps.get(self.next_gap..)?;
        remaining_gaps.iter().find(|span| !span.is_outage)
    }

    /// A gap lies between the last evaluation and now.
    pub(super) fn is_over_gap(&self, context: &HoldingContext<'_>) -> bool {
        self.next_gap(context).is_some()
    }

    /// The same holder held it through the gaps.
    pub(super) fn continue_after_gaps(&mut self, context: &HoldingContext<'_>, preview: &mut PreviewOutput) {
        while let Some(span) = context.lock.gaps.get(self.next_gap) {
            self.skip_unobserved(context, *span, preview);
            if !span.is_outage {
                // A server that restarts does not know the earlier renewal interval.
                self.cadence = None;
                self.is_deadline_known = false;
            }
        }
    }

    /// Its state is unknown within the span.
    fn skip_unobserved(&mut self, context: &HoldingContext<'_>, span: Span, preview: &mut PreviewOutput) {
        self.advance_observed(context, span.began, preview);
        if self.phase.is_some() {
            let unknown = ConditionResult::Unknown;
            (self.phase, _) = step(self.phase, unknown, context.rule.timing, span.began);
        }
        self.at = self.at.max(span.ended);
        self.next_gap += 1;
    }

    /// It ended in the first of the gaps.
    pub(super) fn end_unobserved(&mut self, context: &HoldingContext<'_>, preview: &mut PreviewOutput) {
        if let Some(span) = self.next_gap(context) {
            self.stop(context, preview);
            self.resolve(context, span.ended, preview);
        }
    }

    /// Its state is unknown from the first of the gaps on.
    pub(super) fn stop(&mut self, context: &HoldingContext<'_>, preview: &mut PreviewOutput) {
        if let Some(span) = self.next_gap(context) {
            self.advance(context, span.began, preview);
        }
    }

    fn deadline(&self) -> Option<i64> {
        let ttl_ms = self.ttl_ms.filter(|_| self.is_deadline_known)?;
        Some(self.renewed_at + ttl_ms)
    }

    /// Advances to `to` without an event, over outages of its backend.
    pub(super) fn advance(&mut self, context: &HoldingContext<'_>, to: i64, preview: &mut PreviewOutput) {
        let outage = |replay: &Self| {
            let next = context.lock.gaps.get(replay.next_gap);
            next.filter(|span| span.is_outage && span.began < to)
        };
        while let Some(span) = outage(self) {
            self.skip_unobserved(context, *span, preview);
        }
        self.advance_observed(context, to, preview);
    }

    /// Advances to `to` while the lock is observed.
    fn advance_observed(&mut self, context: &HoldingContext<'_>, to: i64, preview: &mut PreviewOutput) {
        let from = self.at;
        if to <= from {
            return;
        }
        self.at = to;
        let first = next_evaluation(from);
        if self.phase.is_some() && first < to {
            let (sign, _) = self.evaluate(context, first, preview);
            self.step(context, sign, first, preview);
        }
        // After its deadline, another condition covers the lease.
        let ends = matches!(
            context.rule.condition.kind,
            ConditionKind::NearExpiry | ConditionKind::NotRenewing
        );
        let deadline = self.deadline().filter(|_| ends).unwrap_or(i64::MAX);
        let end = deadline.min(to) - 1;
        if end <= from {
            return;
        }
        for at in preview.ends_between(from, end) {
            let (_, measure) = self.evaluate(context, at, preview);
            preview.measured(at, measure);
            preview.held(at, at - self.acquired_at);
        }
        let (sign, measure) = self.evaluate(context, end, preview);
        preview.measured(end, measure);
        preview.held(end, end - self.acquired_at);
        let last = last_evaluation(end);
        if sign != ConditionResult::Holds
            || last < first
            || self.evaluate(context, last, preview).0 != ConditionResult::Holds
        {
            return;
        }
        let begins = self.first_hold(context, first, last, preview);
        self.step(context, ConditionResult::Holds, begins, preview);
        let due = self
            .phase
            .and_then(|phase| phase.due(ConditionResult::Holds, context.rule.timing));
        if let Some(due) = due.map(next_evaluation).filter(|due| *due <= last) {
            self.step(context, ConditionResult::Holds, due, preview);
        }
    }

    /// The first evaluation at which the condition holds, given that it holds at `last`.
    fn first_hold(
        &self,
        context: &HoldingContext<'_>,
        first: i64,
        last: i64,
        preview: &mut PreviewOutput,
    ) -> i64 {
        let (mut low, mut high) = (first, last);
        while low < high {
            let middle = last_evaluation(low + (high - low) / 2);
            if self.evaluate(context, middle, preview).0 == ConditionResult::Holds {
                high = middle;
            } else {
                low = middle + EVALUATE_EVERY_MS;
            }
        }
        high
    }

    fn step(
        &mut self,
        context: &HoldingContext<'_>,
        sign: ConditionResult,
        at: i64,
        preview: &mut PreviewOutput,
    ) {
        let (phase, change) = step(self.phase, sign, context.rule.timing, at);
        self.phase = phase;
        match (change, self.firing) {
            (Some(AlertTransition::Fired), _) => {
                self.firing = Some(preview.fired(at, || self.evaluation_result(context, at)));
            }
            (Some(AlertTransition::Resolved), Some(firing)) => preview.resolved(firing, at),
            _ => {}
        }
    }

    fn evaluation_result(&self, context: &HoldingContext<'_>, at: i64) -> EvaluationResult {
        let (condition, usual) = (&context.rule.condition, context.holds.usual());
        let snapshot = self.snapshot(context, at);
        let (_, measure) = evaluate_lock(condition, &snapshot, &|_| usual);
        EvaluationResult {
            rule: 0,
            subject: Subject::Lock(context.lock.id()),
            owner: snapshot.owner.map(str::to_owned),
            holding: String::new(),
            measure,
            why: lock_sentence(condition, &snapshot, measure, usual),
        }
    }

    fn evaluate(
        &self,
        context: &HoldingContext<'_>,
        at: i64,
        preview: &mut PreviewOutput,
    ) -> (ConditionResult, i64) {
        preview.evaluated();
        let usual = |_: &LockSnapshot<'_>| context.holds.usual();
        evaluate_lock(&context.rule.condition, &self.snapshot(context, at), &usual)
    }

    /// The lock as it would have been observed at a moment.
    fn snapshot<'a>(&self, context: &HoldingContext<'a>, at: i64) -> LockSnapshot<'a> {
        let cadence = self.cadence.as_ref().and_then(|cadence| {
            Some(CadenceFacts {
                interval_ms: cadence.interval_ms()?,
                longest_ms: cadence.longest_ms()?,
                silent_ms: at - self.renewed_at,
            })
        });
        let (lock, times) = (context.lock, context.lock.scan_times);
        // If the TTL is not reported, a renewal lies between two scans.
        let scan_ms = if self.is_ttl_recorded {
            0
        } else {
            times.poll_interval_ms
        };
        let sampling_ms = SAMPLING_MS + times.grain_ms + scan_ms;
        let near_below_ms = self.cadence.as_ref().zip(self.ttl_ms).map(|(cadence, ttl_ms)| {
            diagnosis::near_below_ms(cadence.used_max_ms(), ttl_ms, sampling_ms, times.grain_ms)
        });
        LockSnapshot {
            backend: lock.backend,
            source: lock.source,
            name: lock.name,
            owner: Some(context.owner).filter(|owner| !owner.is_empty()),
            safety: None,
            facts: Facts {
                lifetime: match (self.ttl_ms, self.deadline()) {
                    (Some(track_ms), Some(deadline)) => LifetimeFacts::Leased {
                        remaining_ms: deadline - at,
                        track_ms,
                    },
                    _ if let Some(stale_after_ms) = self.stale_after_ms => LifetimeFacts::Heartbeat {
                        silent_ms: at - self.renewed_at,
                        stale_after_ms,
                    },
                    _ => LifetimeFacts::Unknown {
                        why: "its TTL was not recorded",
                    },
                },
                cadence,
                renewals: self.renewals,
                near_below_ms,
                sampling_ms,
                waiters: None,
                oldest_waiter_ms: None,
                condition: None,
                is_long_held: false,
            },
            token: None,
            acquired_at: Some(self.acquired_at),
            held_ms: at - self.acquired_at,
            lag_ms: times.poll_interval_ms + EVALUATE_EVERY_MS,
        }
    }
}

/// An event that ended an outage is within it, to the length of the scan.
fn observed_from(at: i64, gaps: &[Span]) -> i64 {
    let outage = gaps.last().filter(|gap| gap.is_outage);
    outage.map_or(at, |outage| at.max(outage.ended))
}
