//! Converts the compact entry to the displayed row.

use chrono::{DateTime, TimeDelta, Utc};
use domain::backend::BackendKind;
use domain::diagnosis;
use domain::generation::Generation;
use domain::lock::{Lock, Renewal};
use domain::names::{BackendName, LockId, OwnerId, Resource};
use domain::reported::Reported;
use domain::state::{LockState, StateReason};
use domain::tick::Tick;
use domain::token::FencingToken;

use super::entry::{Ends, Entry};
use super::long_held::Judge;
use super::shard::Shard;
use super::snapshots::Standpoint;
use runtime::clock::ClockReading;

/// Facts about the backend that a row needs.
pub(super) struct RowContext<'a> {
    pub(super) backend: &'a BackendName,
    pub(super) kind: BackendKind,
    pub(super) poll_interval_ms: i64,
    pub(super) offset_ms: i64,
    /// The backend is stale or down, and why.
    pub(super) blind: Option<&'a str>,
    pub(super) now: ClockReading,
    pub(super) judge: Judge,
}

impl RowContext<'_> {
    /// A tick of ours on the backend's clock.
    fn backend_time(&self, tick: Tick) -> DateTime<Utc> {
        self.now.wall_at(tick) + TimeDelta::milliseconds(self.offset_ms)
    }
}

impl Shard {
    pub(super) fn row(&self, entry: &Entry, context: &RowContext<'_>) -> Option<Lock> {
        let info = self.source(entry)?;
        let gaps = &self.gaps;
        let now = context.now.tick;
        let age_ms = now.since(entry.read_at);
        let (state, reasons) = self.state_and_reasons(entry, context);
        // A stale row was not read since: it is known to be held until its last reading only.
        let until = if state == LockState::Stale {
            entry.read_at
        } else {
            now
        };
        let acquired_at = gaps.join(at(entry.acquired_at), entry.gaps.acquired_at);
        let held_ms = acquired_at
            .as_ref()
            .map(|since| (context.backend_time(until) - *since).num_milliseconds());
        let seen_ms = until.since(entry.first_seen);
        let leased = |value: i64| match entry.ends {
            Ends::Leased => Reported::Value(value),
            Ends::Heartbeat | Ends::NoTtl | Ends::Session | Ends::Unknown => {
                gaps.join(value, entry.gaps.lifetime)
            }
        };
        Some(Lock {
            id: LockId {
                backend: context.backend.clone(),
                source: info.source.clone(),
                resource: Resource::from_bytes(&entry.name),
            },
            kind: context.kind,
            owner_id: gaps.join(owner(entry), entry.gaps.owner),
            owner_count: u32::from(entry.owner_count),
            lease_id: gaps.join(text(entry.lease_id.as_deref()), entry.gaps.lease_id),
            generation: gaps.join(
                Generation::new(text(entry.generation.as_deref())),
                entry.gaps.generation,
            ),
            fencing_token: gaps.join(FencingToken::new(entry.token), entry.gaps.token),
            expires_at: leased(0).map(|_| context.backend_time(entry.deadline)),
            held_at_least_ms: held_ms.known().copied().unwrap_or(seen_ms).max(0),
            acquired_at,
            held_ms,
            ttl_ms: gaps.join(i64::from(entry.track_ms), entry.gaps.ttl),
            remaining_ms: leased(entry.deadline.since(now)),
            waiter_count: gaps.join(entry.waiters, entry.gaps.waiters),
            state,
            reasons,
            safety: info.safety.clone(),
            renewal: renewal(entry, context, now),
            observed_at: context.now.wall_at(entry.read_at),
            age_ms,
            track_ms: (entry.ends == Ends::Leased).then(|| i64::from(entry.track_ms)),
            low_marks_ms: entry
                .cadence
                .as_ref()
                .filter(|_| entry.ends == Ends::Leased)
                .map(|c| c.low_marks_ms())
                .unwrap_or_default(),
            notch_ms: entry.notch_ms(info.grain_ms, context.poll_interval_ms),
            session_bound: entry.ends == Ends::Session,
        })
    }

    /// The reason, as in the alert.
    fn why_long_held(&self, entry: &Entry, context: &RowContext<'_>) -> Option<String> {
        let from = Standpoint {
            backend: context.backend,
            poll_interval_ms: context.poll_interval_ms,
            offset_ms: context.offset_ms,
            now: context.now,
            lag_ms: 0,
        };
        Some(
            context
                .judge
                .why(&self.snapshot(entry, self.source(entry)?, &from)),
        )
    }

    fn state_and_reasons(&self, entry: &Entry, context: &RowContext<'_>) -> (LockState, Vec<StateReason>) {
        let grain_ms = self.source(entry).map_or(0, |info| info.grain_ms);
        let is_blind = context.blind.is_some() || entry.state == LockState::Stale;
        let facts = if is_blind {
            entry.facts(&self.gaps, grain_ms, context.poll_interval_ms)
        } else {
            entry.facts_at(&self.gaps, grain_ms, context.poll_interval_ms, context.now.tick)
        };
        let mut before = diagnosis::explain(&facts, diagnosis::diagnose(&facts));
        if let Some(reason) = before
            .iter_mut()
            .find(|reason| reason.state == LockState::LongHeld)
        {
            reason.why = self.why_long_held(entry, context).unwrap_or_default();
        }
        let age = domain::format::duration(context.now.tick.since(entry.read_at));
        let why = match context.blind {
            Some(why) => why.to_owned(),
            None if entry.state == LockState::Stale => {
                let fault = self.source(entry).and_then(|info| info.fault.as_deref());
                fault
                    .unwrap_or("Its part of the backend was not read in the last scans")
                    .to_owned()
            }
            None => {
                let state = entry.state_at(context.now.tick);
                // An expiry since the last reading precedes the other states.
                before.sort_by_key(|reason| reason.state != state);
                return (state, before);
            }
        };
        let stale = StateReason {
            state: LockState::Stale,
            why: format!("Last seen {age} ago. {why}."),
        };
        (LockState::Stale, std::iter::once(stale).chain(before).collect())
    }
}

fn renewal(entry: &Entry, context: &RowContext<'_>, now: Tick) -> Reported<Renewal> {
    let cadence = entry
        .cadence
        .as_ref()
        .and_then(|cadence| Some((cadence, cadence.interval_ms()?)));
    match (entry.ends, cadence) {
        (Ends::NoTtl | Ends::Session, _) => Reported::absent("it has no lease to renew"),
        (_, None) => Reported::unknown("no renewal interval is known yet: two observed renewals are needed"),
        (_, Some((cadence, interval_ms))) => Reported::Value(Renewal {
            last_at: context.backend_time(cadence.last()),
            last_ago_ms: now.since(cadence.last()),
            interval_ms,
            count: cadence.count(),
        }),
    }
}

fn owner(entry: &Entry) -> OwnerId {
    OwnerId::new(entry.owner.as_deref().unwrap_or_default())
}

fn text(value: Option<&str>) -> String {
    value.unwrap_or_default().to_owned()
}

fn at(ms: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(ms).unwrap_or_default()
}
