//! One lock as stored in the inventory: compact, because there may be a million.

use domain::diagnosis::{self, CadenceFacts, Facts, LifetimeFacts, StateSet};
use domain::observation::ObservedCondition;
use domain::renewal_interval::Cadence;
use domain::state::LockState;
use domain::tick::Tick;
use std::sync::Arc;

use super::missing_reasons::{GapId, MissingReasons};
use super::template_groups::GroupId;

/// How the lock ends; the numbers are in [`Entry::deadline`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    Leased,
    /// No expiry; the deadline is that of the next heartbeat.
    Heartbeat,
    NoTtl,
    Session,
    Unknown,
}

/// Reasons for missing values, by field; see [`MissingReasons`](super::missing_reasons).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct EntryGaps {
    pub(super) owner: GapId,
    pub(super) lease_id: GapId,
    pub(super) generation: GapId,
    pub(super) token: GapId,
    pub(super) acquired_at: GapId,
    pub(super) ttl: GapId,
    pub(super) waiters: GapId,
    /// Why it has no TTL.
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
    /// First observation of this acquisition.
    pub(super) first_seen: Tick,
    /// When its lease runs out, on our monotonic clock; never later than the true time.
    pub(super) deadline: Tick,
    pub(super) read_at: Tick,
    /// A reading after this time finds the lock long-held.
    pub(super) long_after: Tick,
    pub(super) cadence: Option<Box<Cadence>>,
    pub(super) condition: Option<Box<ObservedCondition>>,
    /// Length of the track: the TTL if reported, otherwise the largest time left observed.
    pub(super) track_ms: u32,
    pub(super) waiters: u32,
    /// 0: not reported.
    pub(super) oldest_waiter_ms: u32,
    /// Saturating at two bytes.
    pub(super) owner_count: u16,
    /// Number of the scan that last found it.
    pub(super) pass: u32,
    pub(super) gaps: EntryGaps,
    pub(super) source: u16,
    /// Template of its name.
    pub(super) group: GroupId,
    /// Its acquisition was observed.
    pub(super) seen_begin: bool,
    pub(super) ends: Ends,
    pub(super) state: LockState,
}

/// A lock is read again at the earliest this long after a reading, in milliseconds.
const RECHECK_MS_MIN: i64 = 50;

/// A million entries with their numbers and texts must fit the goal of 300 bytes each in
/// addition to the name.
const _: () = assert!(size_of::<Option<Entry>>() <= 160);

impl Entry {
    /// As of the last reading; `grain_ms` is the clock resolution of the backend.
    pub(super) fn facts<'a>(
        &'a self,
        gaps: &'a MissingReasons,
        grain_ms: i64,
        poll_interval_ms: i64,
    ) -> Facts<'a> {
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
            near_below_ms: self.near_below_ms(grain_ms, poll_interval_ms),
            sampling_ms: self.sampling_ms(grain_ms, poll_interval_ms),
            waiters: (self.gaps.waiters == super::missing_reasons::FILLED).then_some(self.waiters),
            oldest_waiter_ms: (self.oldest_waiter_ms > 0).then_some(i64::from(self.oldest_waiter_ms)),
            condition: self.condition.as_deref(),
            is_long_held: self.read_at > self.long_after,
        }
    }

    /// Facts at the time of a request: those of the last reading, unless the lease has run out
    /// since.
    pub(super) fn facts_at<'a>(
        &'a self,
        gaps: &'a MissingReasons,
        grain_ms: i64,
        poll_interval_ms: i64,
        now: Tick,
    ) -> Facts<'a> {
        let mut facts = self.facts(gaps, grain_ms, poll_interval_ms);
        if self.runs_out().is_none_or(|end| end > now) {
            return facts;
        }
        if diagnosis::state_after_end(diagnosis::diagnose(&facts).worst()) == LockState::Expired {
            let ago_ms = now.since(self.deadline);
            facts.lifetime = LifetimeFacts::RanOut { ago_ms };
        } else {
            facts.lifetime = LifetimeFacts::Unknown {
                why: diagnosis::RAN_OUT,
            };
        }
        facts
    }

    /// State at the time of a request: a lease that ran out after the last reading is expired
    /// or unknown.
    pub(super) fn state_at(&self, now: Tick) -> LockState {
        match self.runs_out() {
            Some(end) if end <= now => diagnosis::state_after_end(self.state),
            Some(_) | None => self.state,
        }
    }

    /// When time alone makes the state expired or unknown; `None` if it does not.
    pub(super) fn runs_out(&self) -> Option<Tick> {
        let is_running = self.ends == Ends::Leased && self.deadline > self.read_at;
        (is_running && self.state != LockState::Stale).then_some(self.deadline)
    }

    /// Identifies this acquisition, as in alerts.
    pub(super) fn holding(&self) -> String {
        let acquired_at =
            (self.gaps.acquired_at == super::missing_reasons::FILLED).then_some(self.acquired_at);
        domain::alerts::holding(self.reported_token(), acquired_at, self.owner.as_deref())
    }

    /// Whether `later` is a reading of the same holding. A holding with a token may change the text of its owner: the
    /// leader of an etcd election writes another value, or an ACL hides the name of a Consul session. So may a session,
    /// which its generation identifies: a Postgres client sets another `application_name`. Other holdings without a token
    /// are identified by their owner.
    pub(super) fn is_same_holding(&self, later: &Self) -> bool {
        let is_token_same =
            self.reported_token().is_some() && self.reported_token() == later.reported_token();
        let are_sessions = self.ends == Ends::Session && later.ends == Ends::Session;
        let is_identified = self.generation.is_some() && (is_token_same || are_sessions);
        self.generation == later.generation && (is_identified || self.owner == later.owner)
    }

    pub(super) fn reported_token(&self) -> Option<u64> {
        (self.token > 0).then_some(self.token)
    }

    /// 0 if not reported.
    pub(super) fn reported_waiters(&self) -> u32 {
        if self.gaps.waiters == super::missing_reasons::FILLED {
            self.waiters
        } else {
            0
        }
    }

    /// With a reported TTL a reading determines the last renewal exactly; otherwise only
    /// between two readings.
    fn sampling_ms(&self, grain_ms: i64, poll_interval_ms: i64) -> i64 {
        let is_filled = self.gaps.ttl == super::missing_reasons::FILLED;
        grain_ms + if is_filled { 250 } else { 250 + poll_interval_ms }
    }

    /// Time left at which it becomes near expiry; `None` without a lease.
    pub(super) fn notch_ms(&self, grain_ms: i64, poll_interval_ms: i64) -> Option<i64> {
        let sampling_ms = self.sampling_ms(grain_ms, poll_interval_ms);
        let leased = self.ends == Ends::Leased;
        let track_ms = i64::from(self.track_ms);
        let below_ms = self.near_below_ms(grain_ms, poll_interval_ms);
        leased.then(|| diagnosis::notch_ms(self.cadence_facts(), below_ms, track_ms, sampling_ms))
    }

    fn near_below_ms(&self, grain_ms: i64, poll_interval_ms: i64) -> Option<i64> {
        let sampling_ms = self.sampling_ms(grain_ms, poll_interval_ms);
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

    pub(super) fn diagnose(&self, gaps: &MissingReasons, grain_ms: i64, poll_interval_ms: i64) -> StateSet {
        diagnosis::diagnose(&self.facts(gaps, grain_ms, poll_interval_ms))
    }

    /// Its state as of the reading, and when to read it again because time alone changes it
    /// before the next scan.
    pub(super) fn diagnose_ahead(
        &self,
        gaps: &MissingReasons,
        grain_ms: i64,
        poll_interval_ms: i64,
    ) -> (LockState, Option<Tick>) {
        let facts = self.facts(gaps, grain_ms, poll_interval_ms);
        let changes_ms = diagnosis::changes_after_ms(&facts).map(|ms| ms.max(RECHECK_MS_MIN));
        let recheck_at = changes_ms
            .filter(|ms| *ms < poll_interval_ms)
            .map(|ms| self.read_at.plus(ms));
        (diagnosis::diagnose(&facts).worst(), recheck_at)
    }
}
