//! Locks of the past, one holding after the other, judged as they would have been seen.

use std::collections::{HashMap, HashSet};

use super::Board;
use crate::alerts::kind::{Kind, Past as Known};
use crate::alerts::locks::{LockSight, judge_lock, tell_lock};
use crate::alerts::machine::{Change, Phase, Sign, step};
use crate::alerts::past::Past;
use crate::alerts::round::{Found, Subject};
use crate::alerts::rule::Rule;
use crate::cadence::Cadence;
use crate::detail::EventKind;
use crate::diagnosis::{self, CadenceFacts, Facts, LifetimeFacts};
use crate::history::HistoryEvent;
use crate::names::LockId;
use crate::observation::Tick;

/// A moment is found this exactly, in milliseconds.
const GRAIN_MS: i64 = 250;
/// As where the TTL is told: how late a renewal may be seen; and how late the next look comes, in milliseconds.
const SAMPLING_MS: i64 = 250;
const LAG_MS: i64 = 3_000;
/// Renewals of one run that are followed; a rhythm is known by then.
const FOLLOWED: u32 = 9;

#[derive(Default)]
pub(super) struct Lives {
    held: HashMap<LockId, Life>,
    seen: HashSet<LockId>,
    pub(super) acquisitions: u64,
    pub(super) without_ttl: u64,
}

struct Life {
    /// Until here it was judged.
    at: i64,
    acquired_at: i64,
    owner: Option<String>,
    token: Option<u64>,
    ttl_ms: Option<i64>,
    /// Of the last renewal, or of the acquisition.
    renewed_at: i64,
    renewals: u32,
    cadence: Option<Cadence>,
    phase: Option<Phase>,
    /// Its firing on the board.
    place: usize,
}

impl Lives {
    pub(super) fn seen(&self) -> usize {
        self.seen.len()
    }

    /// Whether the past is wanted too.
    pub(super) fn event(
        &mut self,
        rule: &Rule,
        event: &HistoryEvent,
        past: &Past,
        board: &mut Board,
    ) -> bool {
        let kind = rule.condition.kind;
        let is_gap = matches!(event.kind, EventKind::Unwatched | EventKind::WatchedAgain);
        let owner = event.owner.as_ref().map(|owner| owner.as_str());
        if is_gap || kind.info().past != Known::Events || !rule.scope.has_backend(&event.backend) {
            return false;
        }
        let wants_past = kind == Kind::LongHeld;
        if !rule.scope.prefix.covers(event.resource.as_bytes()) {
            return false;
        }
        let id = LockId {
            backend: event.backend.clone(),
            source: event.source.clone(),
            resource: event.resource.clone(),
        };
        match event.kind {
            EventKind::Acquired | EventKind::Reclaimed => {
                if let Some(life) = self.held.remove(&id) {
                    life.close(rule, &id, event.at, past, board);
                }
                self.acquisitions += 1;
                self.without_ttl += u64::from(event.ttl_ms.is_none());
                if !self.seen.contains(&id) {
                    self.seen.insert(id.clone());
                }
                if rule.scope.owner.matches(owner.unwrap_or_default()) {
                    self.held.insert(id, Life::of(event));
                }
            }
            EventKind::Renewed => {
                if let Some(life) = self.held.get_mut(&id) {
                    life.advance(rule, &id, event.at, past, board);
                    life.renew(event);
                }
            }
            EventKind::Released | EventKind::Expired | EventKind::Revoked => {
                if let Some(life) = self.held.remove(&id) {
                    life.close(rule, &id, event.at, past, board);
                }
            }
            EventKind::Waiting
            | EventKind::FewerWaiting
            | EventKind::GrantedAfterWait
            | EventKind::Rejected
            | EventKind::Lost
            | EventKind::Unwatched
            | EventKind::WatchedAgain => {}
        }
        wants_past
    }

    /// From here on nobody looked: what fires then stays so, and what is held then is not known any more.
    pub(super) fn forget(&mut self, rule: &Rule, past: &Past, at: i64, board: &mut Board) {
        for (id, mut life) in self.held.drain() {
            life.advance(rule, &id, at, past, board);
        }
    }

    pub(super) fn end(&mut self, rule: &Rule, past: &Past, to: i64, board: &mut Board) {
        self.forget(rule, past, to, board);
    }
}

impl Life {
    fn of(event: &HistoryEvent) -> Self {
        Self {
            at: event.at,
            acquired_at: event.at,
            owner: event.owner.as_ref().map(|owner| owner.as_str().to_owned()),
            token: event.token.map(crate::token::FencingToken::number),
            ttl_ms: event.ttl_ms,
            renewed_at: event.at,
            renewals: 0,
            cadence: None,
            phase: None,
            place: 0,
        }
    }

    /// One row of renewals: evenly spaced from its time on.
    fn renew(&mut self, event: &HistoryEvent) {
        self.ttl_ms = event.ttl_ms.or(self.ttl_ms);
        let (count, until) = event
            .run
            .map_or((1, event.at), |run| (run.count.max(1), run.until));
        let step = if count > 1 {
            (until - event.at) / i64::from(count - 1)
        } else {
            0
        };
        let skipped = count.saturating_sub(FOLLOWED);
        for index in (0..count).filter(|index| *index == 0 || *index >= skipped) {
            let at = Tick(if index + 1 == count {
                until
            } else {
                event.at + step * i64::from(index)
            });
            let before = std::mem::replace(&mut self.renewed_at, at.0);
            // The newest intervals count: those left out are as long as those that follow.
            match &mut self.cadence {
                Some(cadence) if index == skipped && skipped > 1 => cadence.renewed(at, 0, step),
                Some(cadence) => cadence.renewed(at, 0, at.0 - before),
                None => self.cadence = Some(Cadence::begin(at, 0, at.0 - before)),
            }
        }
        self.renewals = self.renewals.saturating_add(count);
        self.renewed_at = until;
        self.at = self.at.max(until);
    }

    fn close(mut self, rule: &Rule, id: &LockId, at: i64, past: &Past, board: &mut Board) {
        self.advance(rule, id, at, past, board);
        if matches!(self.phase, Some(Phase::Firing { .. })) {
            board.resolved(self.place, at + rule.timing.keep_ms);
        }
    }

    fn near_below_ms(&self) -> Option<i64> {
        let used_ms = self.cadence.as_ref()?.used_max_ms();
        Some(diagnosis::near_below_ms(used_ms, self.ttl_ms?, SAMPLING_MS, 0))
    }

    fn deadline(&self) -> Option<i64> {
        self.ttl_ms.map(|ttl_ms| self.renewed_at + ttl_ms)
    }

    /// Time alone, up to `to`.
    fn advance(&mut self, rule: &Rule, id: &LockId, to: i64, past: &Past, board: &mut Board) {
        let from = self.at;
        self.at = self.at.max(to);
        if to <= from {
            return;
        }
        if self.phase.is_some() {
            let (sign, _) = self.judge(rule, id, from, past);
            self.step(rule, id, sign, from, past, board);
        }
        // Behind its deadline a lease is another condition's affair.
        let ends = matches!(rule.condition.kind, Kind::NearExpiry | Kind::NotRenewing);
        let deadline = self.deadline().filter(|_| ends);
        let last = deadline.map_or(to - 1, |deadline| (deadline - 1).min(to - 1));
        if last <= from {
            return;
        }
        for at in board.ends_between(from, last).collect::<Vec<_>>() {
            let (_, measure) = self.judge(rule, id, at, past);
            board.measured(at, measure);
        }
        let (sign, measure) = self.judge(rule, id, last, past);
        board.measured(last, measure);
        if sign != Sign::Holds {
            return;
        }
        let first = self.first_hold(rule, id, from, last, past);
        self.step(rule, id, Sign::Holds, first, past, board);
        if let Some(Phase::Pending { since, .. }) = self.phase {
            let due = since + rule.timing.for_ms;
            if due <= last {
                self.step(rule, id, Sign::Holds, due, past, board);
            }
        }
    }

    /// The first moment at which the condition holds; it does at `to`.
    fn first_hold(&self, rule: &Rule, id: &LockId, from: i64, to: i64, past: &Past) -> i64 {
        let (mut low, mut high) = (from, to);
        if self.judge(rule, id, low, past).0 == Sign::Holds {
            return low;
        }
        while high - low > GRAIN_MS {
            let middle = low + (high - low) / 2;
            if self.judge(rule, id, middle, past).0 == Sign::Holds {
                high = middle;
            } else {
                low = middle;
            }
        }
        high
    }

    fn step(&mut self, rule: &Rule, id: &LockId, sign: Sign, at: i64, past: &Past, board: &mut Board) {
        let (phase, change) = step(self.phase, sign, rule.timing, at);
        self.phase = phase;
        match change {
            Some(Change::Fired) => {
                let p95 = past.p95_ms(id);
                let sight = self.sight(id, at);
                let (_, measure) = judge_lock(&rule.condition, &sight, &|_| p95);
                let why = tell_lock(&rule.condition, &sight, measure, p95);
                self.place = board.fired(
                    at,
                    &Found {
                        rule: 0,
                        subject: Subject::Lock(id.clone()),
                        owner: self.owner.clone(),
                        holding: String::new(),
                        measure,
                        why,
                    },
                );
            }
            Some(Change::Resolved) => board.resolved(self.place, at),
            _ => {}
        }
    }

    fn judge(&self, rule: &Rule, id: &LockId, at: i64, past: &Past) -> (Sign, i64) {
        judge_lock(&rule.condition, &self.sight(id, at), &|_| past.p95_ms(id))
    }

    /// As it would have been seen at a moment.
    fn sight<'a>(&'a self, id: &'a LockId, at: i64) -> LockSight<'a> {
        let cadence = self.cadence.as_ref().and_then(|cadence| {
            Some(CadenceFacts {
                interval_ms: cadence.interval_ms()?,
                longest_ms: cadence.longest_ms()?,
                silent_ms: at - self.renewed_at,
            })
        });
        LockSight {
            backend: &id.backend,
            source: &id.source,
            name: id.resource.as_bytes(),
            owner: self.owner.as_deref(),
            safety: None,
            facts: Facts {
                lifetime: match (self.ttl_ms, self.deadline()) {
                    (Some(track_ms), Some(deadline)) => LifetimeFacts::Leased {
                        remaining_ms: deadline - at,
                        track_ms,
                    },
                    _ => LifetimeFacts::Unknown {
                        why: "its TTL was not recorded",
                    },
                },
                cadence,
                renewals: self.renewals,
                near_below_ms: self.near_below_ms(),
                sampling_ms: SAMPLING_MS,
                waiters: None,
                oldest_waiter_ms: None,
                condition: None,
                is_long_held: false,
            },
            token: self.token,
            acquired_at: Some(self.acquired_at),
            held_ms: at - self.acquired_at,
            lag_ms: LAG_MS,
        }
    }
}
