//! One lock as the inventory keeps it: compact, because there may be a million.

use domain::cadence::Cadence;
use domain::diagnosis::{self, CadenceFacts, Facts, LifetimeFacts, Verdict};
use domain::observation::{Condition, Tick};
use domain::state::LockState;
use std::sync::Arc;

use super::gaps::{GapId, Gaps};
use super::groups::GroupId;

/// How the lock ends; the numbers are in [`Entry::deadline`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    Leased,
    /// No expiry; the deadline is that of the next sign of life.
    Heartbeat,
    NoTtl,
    Session,
    Unknown,
}

/// Reasons for missing values, by field; see [`Gaps`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct EntryGaps {
    pub(super) owner: GapId,
    pub(super) lease_id: GapId,
    pub(super) generation: GapId,
    pub(super) token: GapId,
    pub(super) acquired_at: GapId,
    pub(super) ttl: GapId,
    pub(super) waiters: GapId,
    /// Why it has no lease that runs down.
    pub(super) lifetime: GapId,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: Box<[u8]>,
    pub(super) owner: Option<Arc<str>>,
    pub(super) lease_id: Option<Box<str>>,
    pub(super) generation: Option<Box<str>>,
    pub(super) token: u64,
    /// Milliseconds since the epoch, by the backend's clock.
    pub(super) acquired_at: i64,
    /// When we first saw this very acquisition.
    pub(super) first_seen: Tick,
    /// When its lease runs out, on our monotonic clock; never later than in truth.
    pub(super) deadline: Tick,
    pub(super) read_at: Tick,
    /// Read later than this, it is long-held.
    pub(super) long_after: Tick,
    pub(super) cadence: Option<Box<Cadence>>,
    pub(super) condition: Option<Box<Condition>>,
    /// Length of the track: the TTL where it is told, else the most that was ever left.
    pub(super) track_ms: u32,
    pub(super) waiters: u32,
    /// 0: not told.
    pub(super) oldest_waiter_ms: u32,
    /// As far as two bytes count.
    pub(super) owner_count: u16,
    /// Number of the pass that last saw it.
    pub(super) pass: u32,
    pub(super) gaps: EntryGaps,
    pub(super) source: u16,
    /// By the template of its name.
    pub(super) group: GroupId,
    /// We saw it begin.
    pub(super) seen_begin: bool,
    pub(super) ends: Ends,
    pub(super) state: LockState,
}

/// A lock is not read again sooner than this after a reading, in milliseconds.
const RECHECK_MS_MIN: i64 = 50;

/// A million of them with their numbers and texts must fit the goal of 300 bytes each beside the name.
const _: () = assert!(size_of::<Option<Entry>>() <= 160);

impl Entry {
    /// As of the last reading; `grain_ms` is how coarse the backend tells time.
    pub(super) fn facts<'a>(&'a self, gaps: &'a Gaps, grain_ms: i64, poll_ms: i64) -> Facts<'a> {
        Facts {
            lifetime: match self.ends {
                Ends::Leased => LifetimeFacts::Leased {
                    remaining_ms: self.deadline.since(self.read_at),
                    track_ms: i64::from(self.track_ms),
                },
                Ends::Heartbeat => LifetimeFacts::Heartbeat {
                    silent_ms: i64::from(self.track_ms) - self.deadline.since(self.read_at),
                    stale_after_ms: i64::from(self.track_ms),
                },
                Ends::NoTtl => LifetimeFacts::NoTtl {
                    why: gaps.why(self.gaps.lifetime),
                },
                Ends::Session => LifetimeFacts::Session,
                Ends::Unknown => LifetimeFacts::Unknown {
                    why: gaps.why(self.gaps.lifetime),
                },
            },
            cadence: self.cadence_facts(),
            renewals: self.cadence.as_ref().map_or(0, |cadence| cadence.count()),
            near_below_ms: self.near_below_ms(grain_ms, poll_ms),
            sampling_ms: self.sampling_ms(grain_ms, poll_ms),
            waiters: (self.gaps.waiters == super::gaps::FILLED).then_some(self.waiters),
            oldest_waiter_ms: (self.oldest_waiter_ms > 0).then_some(i64::from(self.oldest_waiter_ms)),
            condition: self.condition.as_deref(),
            is_long_held: self.read_at > self.long_after,
        }
    }

    /// Facts at the time of an answer: those of the last reading, unless the lease has run out since.
    pub(super) fn facts_at<'a>(
        &'a self,
        gaps: &'a Gaps,
        grain_ms: i64,
        poll_ms: i64,
        now: Tick,
    ) -> Facts<'a> {
        let mut facts = self.facts(gaps, grain_ms, poll_ms);
        if self.runs_out().is_none_or(|end| end > now) {
            return facts;
        }
        if diagnosis::state_after_end(diagnosis::judge(&facts).worst()) == LockState::ExpiredPresent {
            let ago_ms = now.since(self.deadline);
            facts.lifetime = LifetimeFacts::RanOut { ago_ms };
        } else {
            facts.lifetime = LifetimeFacts::Unknown {
                why: diagnosis::RAN_OUT,
            };
        }
        facts
    }

    /// State at the time of an answer: a lease that ran out after the last reading is expired or unknown.
    pub(super) fn state_at(&self, now: Tick) -> LockState {
        match self.runs_out() {
            Some(end) if end <= now => diagnosis::state_after_end(self.state),
            Some(_) | None => self.state,
        }
    }

    /// When time alone makes the state expired or unknown; none where the last reading decides.
    pub(super) fn runs_out(&self) -> Option<Tick> {
        let is_running = self.ends == Ends::Leased && self.deadline > self.read_at;
        (is_running && self.state != LockState::Stale).then_some(self.deadline)
    }

    /// Tells this acquisition from the next one, as alerts do.
    pub(super) fn holding(&self) -> String {
        let acquired_at = (self.gaps.acquired_at == super::gaps::FILLED).then_some(self.acquired_at);
        domain::alerts::holding(self.told_token(), acquired_at, self.owner.as_deref())
    }

    pub(super) fn told_token(&self) -> Option<u64> {
        (self.token > 0).then_some(self.token)
    }

    /// 0 where it is not told.
    pub(super) fn told_waiters(&self) -> u32 {
        if self.gaps.waiters == super::gaps::FILLED {
            self.waiters
        } else {
            0
        }
    }

    /// Where the TTL is told, a reading shows exactly when the last renewal came; else only between which two.
    fn sampling_ms(&self, grain_ms: i64, poll_ms: i64) -> i64 {
        let told = self.gaps.ttl == super::gaps::FILLED;
        grain_ms + if told { 250 } else { 250 + poll_ms }
    }

    /// What is left when it will be called near expiry; none where nothing runs down.
    pub(super) fn notch_ms(&self, grain_ms: i64, poll_ms: i64) -> Option<i64> {
        let sampling_ms = self.sampling_ms(grain_ms, poll_ms);
        let leased = self.ends == Ends::Leased;
        let track_ms = i64::from(self.track_ms);
        let below_ms = self.near_below_ms(grain_ms, poll_ms);
        leased.then(|| diagnosis::notch_ms(self.cadence_facts(), below_ms, track_ms, sampling_ms))
    }

    fn near_below_ms(&self, grain_ms: i64, poll_ms: i64) -> Option<i64> {
        let sampling_ms = self.sampling_ms(grain_ms, poll_ms);
        let used_ms = self.cadence.as_ref()?.used_max_ms();
        let track_ms = i64::from(self.track_ms);
        Some(diagnosis::near_below_ms(used_ms, track_ms, sampling_ms, grain_ms))
    }

    pub(super) fn cadence_facts(&self) -> Option<CadenceFacts> {
        let cadence = self.cadence.as_ref()?;
        Some(CadenceFacts {
            interval_ms: cadence.interval_ms()?,
            longest_ms: cadence.longest_ms()?,
            silent_ms: self.read_at.since(cadence.last()),
        })
    }

    pub(super) fn judge(&self, gaps: &Gaps, grain_ms: i64, poll_ms: i64) -> Verdict {
        diagnosis::judge(&self.facts(gaps, grain_ms, poll_ms))
    }

    /// Its state as of the reading, and when to read it again because time alone gives it another one before the next scan.
    pub(super) fn judge_ahead(&self, gaps: &Gaps, grain_ms: i64, poll_ms: i64) -> (LockState, Option<Tick>) {
        let facts = self.facts(gaps, grain_ms, poll_ms);
        let turn_ms = diagnosis::turns_after_ms(&facts).map(|ms| ms.max(RECHECK_MS_MIN));
        let recheck_at = turn_ms.filter(|ms| *ms < poll_ms).map(|ms| self.read_at.plus(ms));
        (diagnosis::judge(&facts).worst(), recheck_at)
    }
}
