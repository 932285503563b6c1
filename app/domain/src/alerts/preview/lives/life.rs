//! One holding, and what a rule says of it as time goes on.

use super::super::board::{Board, FiringNumber};
use super::super::lock_table::LockRef;
use super::super::{PastEvent, last_evaluation, next_evaluation};
use crate::alerts::hold_times::HoldTimes;
use crate::alerts::kind::Kind;
use crate::alerts::limits::EVALUATE_EVERY_MS;
use crate::alerts::locks::{LockSight, judge_lock, tell_lock};
use crate::alerts::machine::{Change, Phase, Sign, step};
use crate::alerts::round::{Found, Subject};
use crate::alerts::rule::Rule;
use crate::cadence::Cadence;
use crate::detail::EventKind;
use crate::diagnosis::{self, CadenceFacts, Facts, LifetimeFacts};
use crate::observation::Tick;

/// How late a renewal may be seen besides the scan times of its backend, in milliseconds.
const SAMPLING_MS: i64 = 250;
/// Renewals of one run that are followed; a rhythm is known by then.
const FOLLOWED: u32 = 9;

pub(super) struct Life {
    /// Until here it was judged.
    at: i64,
    acquired_at: i64,
    ttl_ms: Option<i64>,
    /// Without a TTL: silent for longer, it is not renewing.
    stale_after_ms: Option<i64>,
    /// The TTL was recorded, not seen.
    is_ttl_recorded: bool,
    /// Of the last renewal, or of the acquisition.
    renewed_at: i64,
    renewals: u32,
    cadence: Option<Cadence>,
    phase: Option<Phase>,
    firing: Option<FiringNumber>,
    /// Gaps before this one are behind it.
    next_gap: usize,
    /// False behind a gap, in which it may have been renewed.
    is_deadline_known: bool,
}

/// What a holding is judged with.
pub(super) struct Judging<'a> {
    pub(super) rule: &'a Rule,
    pub(super) lock: &'a LockRef<'a>,
    pub(super) holds: &'a HoldTimes,
    pub(super) owner: &'a str,
}

impl Life {
    pub(super) fn of(event: &PastEvent<'_>, next_gap: usize) -> Self {
        Self {
            at: event.at,
            acquired_at: event.at,
            ttl_ms: event.ttl_ms.or(event.ttl_seen_ms),
            stale_after_ms: event.stale_after_ms,
            is_ttl_recorded: event.ttl_ms.is_some(),
            renewed_at: event.at,
            renewals: 0,
            cadence: None,
            phase: None,
            firing: None,
            next_gap,
            is_deadline_known: true,
        }
    }

    /// Not by a renewal of the holding before.
    pub(super) fn is_renewed_by(&self, event: &PastEvent<'_>) -> bool {
        event.run.map_or(event.at, |run| run.until) >= self.acquired_at
    }

    /// One row of renewals: evenly spaced from its time on.
    pub(super) fn renew(&mut self, event: &PastEvent<'_>) {
        // The most that was ever left is the TTL where none is recorded.
        let seen_ms = event
            .ttl_seen_ms
            .max(self.ttl_ms.filter(|_| !self.is_ttl_recorded));
        self.is_ttl_recorded |= event.ttl_ms.is_some();
        self.ttl_ms = event.ttl_ms.or(seen_ms).or(self.ttl_ms);
        let ttl_ms = self.ttl_ms.unwrap_or(0);
        let (count, until) = event
            .run
            .map_or((1, event.at), |run| (run.count.max(1), run.until));
        let pace = match i64::from(count - 1) {
            0 => 0,
            intervals => (until - event.at) / intervals,
        };
        let skipped = count.saturating_sub(FOLLOWED);
        let mut before = self.renewed_at;
        for index in (0..count).filter(|index| *index == 0 || *index >= skipped) {
            let at = match index + 1 == count {
                true => until,
                false => event.at + pace * i64::from(index),
            };
            // The newest intervals count: those left out are as long as those that follow.
            let interval = if index > 0 { pace } else { at - before };
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

    /// What is known of its end behind a gap.
    pub(super) fn learn_deadline(&mut self, event: &PastEvent<'_>) {
        if let Some(ttl_ms) = self.ttl_ms.filter(|_| event.kind == EventKind::Expired) {
            self.renewed_at = self.renewed_at.max(event.at - ttl_ms);
            self.is_deadline_known = true;
        }
    }

    pub(super) fn close(&mut self, judging: &Judging<'_>, at: i64, board: &mut Board) {
        self.advance(judging, at, board);
        self.resolve(judging, at, board);
    }

    fn resolve(&mut self, judging: &Judging<'_>, at: i64, board: &mut Board) {
        if let (Some(Phase::Firing { .. }), Some(firing)) = (self.phase, self.firing) {
            board.resolved(firing, next_evaluation(at) + judging.rule.timing.keep_ms);
        }
    }

    /// A time without records lies between it and now.
    pub(super) const fn is_over_gap(&self, gaps: &[(i64, i64)]) -> bool {
        self.next_gap < gaps.len()
    }

    /// It was held through the gaps.
    pub(super) fn go_on(&mut self, judging: &Judging<'_>, gaps: &[(i64, i64)], board: &mut Board) {
        for (began, ended) in &gaps[self.next_gap..] {
            self.advance(judging, *began, board);
            let timing = judging.rule.timing;
            if self.phase.is_some() {
                (self.phase, _) = step(self.phase, Sign::Unknown, timing, *began);
            }
            // A server that starts does not know the rhythm of before.
            self.cadence = None;
            self.is_deadline_known = false;
            self.at = self.at.max(*ended);
        }
        self.next_gap = gaps.len();
    }

    /// It ended in the first of the gaps.
    pub(super) fn end_unseen(&mut self, judging: &Judging<'_>, gaps: &[(i64, i64)], board: &mut Board) {
        if let Some((_, ended)) = gaps.get(self.next_gap).copied() {
            self.stop(judging, gaps, board);
            self.resolve(judging, ended, board);
        }
    }

    /// Nothing is known of it from the first of the gaps on.
    pub(super) fn stop(&mut self, judging: &Judging<'_>, gaps: &[(i64, i64)], board: &mut Board) {
        if let Some((began, _)) = gaps.get(self.next_gap) {
            self.advance(judging, *began, board);
        }
    }

    fn deadline(&self) -> Option<i64> {
        let ttl_ms = self.ttl_ms.filter(|_| self.is_deadline_known)?;
        Some(self.renewed_at + ttl_ms)
    }

    /// Time alone, up to `to`.
    pub(super) fn advance(&mut self, judging: &Judging<'_>, to: i64, board: &mut Board) {
        let from = self.at;
        if to <= from {
            return;
        }
        self.at = to;
        let first = next_evaluation(from);
        if self.phase.is_some() && first < to {
            let (sign, _) = self.judge(judging, first, board);
            self.step(judging, sign, first, board);
        }
        // Behind its deadline a lease is another condition's affair.
        let ends = matches!(judging.rule.condition.kind, Kind::NearExpiry | Kind::NotRenewing);
        let deadline = self.deadline().filter(|_| ends).unwrap_or(i64::MAX);
        let end = deadline.min(to) - 1;
        if end <= from {
            return;
        }
        for at in board.ends_between(from, end) {
            let (_, measure) = self.judge(judging, at, board);
            board.measured(at, measure);
        }
        let (sign, measure) = self.judge(judging, end, board);
        board.measured(end, measure);
        let last = last_evaluation(end);
        if sign != Sign::Holds || last < first || self.judge(judging, last, board).0 != Sign::Holds {
            return;
        }
        let begins = self.first_hold(judging, first, last, board);
        self.step(judging, Sign::Holds, begins, board);
        let due = self
            .phase
            .and_then(|phase| phase.due(Sign::Holds, judging.rule.timing));
        if let Some(due) = due.map(next_evaluation).filter(|due| *due <= last) {
            self.step(judging, Sign::Holds, due, board);
        }
    }

    /// The first evaluation at which the condition holds; it does at the last one.
    fn first_hold(&self, judging: &Judging<'_>, first: i64, last: i64, board: &mut Board) -> i64 {
        let (mut low, mut high) = (first, last);
        while low < high {
            let middle = last_evaluation(low + (high - low) / 2);
            if self.judge(judging, middle, board).0 == Sign::Holds {
                high = middle;
            } else {
                low = middle + EVALUATE_EVERY_MS;
            }
        }
        high
    }

    fn step(&mut self, judging: &Judging<'_>, sign: Sign, at: i64, board: &mut Board) {
        let (phase, change) = step(self.phase, sign, judging.rule.timing, at);
        self.phase = phase;
        match (change, self.firing) {
            (Some(Change::Fired), _) => {
                self.firing = Some(board.fired(at, || self.found(judging, at)));
            }
            (Some(Change::Resolved), Some(firing)) => board.resolved(firing, at),
            _ => {}
        }
    }

    fn found(&self, judging: &Judging<'_>, at: i64) -> Found {
        let (condition, p95) = (&judging.rule.condition, judging.holds.p95_ms());
        let sight = self.sight(judging, at);
        let (_, measure) = judge_lock(condition, &sight, &|_| p95);
        Found {
            rule: 0,
            subject: Subject::Lock(judging.lock.id()),
            owner: sight.owner.map(str::to_owned),
            holding: String::new(),
            measure,
            why: tell_lock(condition, &sight, measure, p95),
        }
    }

    fn judge(&self, judging: &Judging<'_>, at: i64, board: &mut Board) -> (Sign, i64) {
        board.evaluated();
        let p95 = |_: &LockSight<'_>| judging.holds.p95_ms();
        judge_lock(&judging.rule.condition, &self.sight(judging, at), &p95)
    }

    /// As it would have been seen at a moment.
    fn sight<'a>(&self, judging: &Judging<'a>, at: i64) -> LockSight<'a> {
        let cadence = self.cadence.as_ref().and_then(|cadence| {
            Some(CadenceFacts {
                interval_ms: cadence.interval_ms()?,
                longest_ms: cadence.longest_ms()?,
                silent_ms: at - self.renewed_at,
            })
        });
        let (lock, times) = (judging.lock, judging.lock.scan_times);
        // Where the TTL is not told, a renewal lies between two scans.
        let scan_ms = if self.is_ttl_recorded { 0 } else { times.poll_ms };
        let sampling_ms = SAMPLING_MS + times.grain_ms + scan_ms;
        let near_below_ms = self.cadence.as_ref().zip(self.ttl_ms).map(|(cadence, ttl_ms)| {
            diagnosis::near_below_ms(cadence.used_max_ms(), ttl_ms, sampling_ms, times.grain_ms)
        });
        LockSight {
            backend: lock.backend,
            source: lock.source,
            name: lock.name,
            owner: Some(judging.owner).filter(|owner| !owner.is_empty()),
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
            lag_ms: times.poll_ms + EVALUATE_EVERY_MS,
        }
    }
}
