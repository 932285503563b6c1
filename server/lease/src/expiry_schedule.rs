//! When the reaper reads the store: not before a lease can have expired. The next expiry is known from the last sweep and
//! from the batches of this process since then. So a sweep, which reads every held lease, is as frequent as expiries
//! are; a regular one finds the leases of replicas that are gone, and follows a clock that was set.
//!
//! **Invariant:** only the time of a sweep depends on this. Whether a lease has expired is decided by the store.

use domain::lease::StoreTime;
use domain::tick::Tick;
use parking_lot::Mutex;

use super::operation::{Applied, OperationResult};
use super::store::{ExpirySweep, Read};

/// A regular sweep takes at most this share of the time, so that it costs less than a fiftieth of a core.
const SWEEP_SHARE: i64 = 50;

pub(super) struct ExpirySchedule {
    state: Mutex<State>,
    /// Milliseconds between regular sweeps.
    check_interval_ms: i64,
}

#[derive(Default)]
struct State {
    /// When the next lease can expire, by the store's clock; `None`: unknown.
    next: Option<StoreTime>,
    /// The earliest expiry of the batches since the running sweep began: that sweep may not have read them.
    since_sweep: Option<StoreTime>,
    /// The store's clock, and ours just before it was read.
    reading: Option<(StoreTime, Tick)>,
    check_at: Tick,
}

impl ExpirySchedule {
    pub(super) fn new(check_interval_ms: i64) -> Self {
        Self {
            state: Mutex::default(),
            check_interval_ms,
        }
    }

    /// Call after the commit.
    pub(super) fn record_batch(&self, applied: &Applied) {
        let expiry = |done: &OperationResult| match done {
            OperationResult::Acquired { lease, .. } | OperationResult::Renewed(lease) => {
                Some(lease.held_until())
            }
            _ => None,
        };
        let Some(earliest) = applied.done.iter().filter_map(expiry).min() else {
            return;
        };
        let mut state = self.state.lock();
        state.reading = Some((applied.now, applied.read_at));
        state.next = state.next.map(|next| next.min(earliest));
        state.since_sweep = Some(state.since_sweep.map_or(earliest, |since| since.min(earliest)));
    }

    /// Whether a lease can have expired, or a regular sweep is due.
    pub(super) fn is_due(&self, at: Tick) -> bool {
        let state = self.state.lock();
        let (Some(next), Some((now, read_at))) = (state.next, state.reading) else {
            return true;
        };
        // The store's clock is at most this late, so a sweep is rather early than late.
        at >= state.check_at || now.plus(at.since(read_at)) >= next
    }

    /// An expiry was found and could not be recorded.
    pub(super) fn require_sweep(&self) {
        self.state.lock().next = None;
    }

    pub(super) fn begin_sweep(&self) {
        self.state.lock().since_sweep = None;
    }

    /// `at`: our clock at the end of the sweep.
    pub(super) fn end_sweep(&self, sweep: &Read<ExpirySweep>, at: Tick) {
        let took_ms = at.since(sweep.read_at).max(0);
        let mut state = self.state.lock();
        let never = StoreTime::from_ms(i64::MAX);
        let found = sweep.value.next_expiry.unwrap_or(never);
        state.next = Some(state.since_sweep.unwrap_or(never).min(found));
        state.reading = Some((sweep.now, sweep.read_at));
        state.check_at = at.plus(self.check_interval_ms.max(took_ms * SWEEP_SHARE));
    }
}

#[cfg(test)]
mod tests {
    use domain::lease::{Lease, LeaseId, Metadata, Ttl};
    use domain::names::OwnerId;
    use domain::token::FencingToken;

    use super::*;

    const INTERVAL_MS: i64 = 30_000;

    fn lease(expires_ms: i64) -> Lease {
        Lease {
            id: LeaseId::from_parts(1, [1; 10]),
            owner: OwnerId::new("o"),
            issuer: "".into(),
            token: FencingToken::new(1),
            ttl: Ttl::parse(30, 3_600).unwrap(),
            metadata: Metadata::default(),
            acquired_at: StoreTime::from_ms(0),
            expires_at: StoreTime::from_ms(expires_ms),
            renewed_at: StoreTime::from_ms(0),
            renewals: 0,
            margin_ms: 0,
            ending: None,
        }
    }

    /// A batch that read the store's clock at 0 ms, and ours at `read_at`.
    fn batch(read_at: i64, expires_ms: i64) -> Applied {
        Applied {
            now: StoreTime::from_ms(0),
            read_at: Tick(read_at),
            done: vec![OperationResult::Renewed(lease(expires_ms))],
            heads: Vec::new(),
            changed: Vec::new(),
            expired: Vec::new(),
            activity: Vec::new(),
        }
    }

    fn sweep(read_at: i64, next_ms: Option<i64>) -> Read<ExpirySweep> {
        Read {
            now: StoreTime::from_ms(0),
            read_at: Tick(read_at),
            value: ExpirySweep {
                expired: Vec::new(),
                next_expiry: next_ms.map(StoreTime::from_ms),
            },
        }
    }

    fn swept(next_ms: Option<i64>) -> ExpirySchedule {
        let schedule = ExpirySchedule::new(INTERVAL_MS);
        assert!(schedule.is_due(Tick(0)), "before the first sweep");
        schedule.begin_sweep();
        schedule.end_sweep(&sweep(0, next_ms), Tick(0));
        schedule
    }

    #[test]
    fn a_sweep_is_due_when_the_next_lease_expires() {
        let schedule = swept(Some(10_000));
        assert!(!schedule.is_due(Tick(9_999)));
        assert!(schedule.is_due(Tick(10_000)));
        let nothing_held = swept(None);
        assert!(!nothing_held.is_due(Tick(INTERVAL_MS - 1)));
        assert!(nothing_held.is_due(Tick(INTERVAL_MS)));
    }

    #[test]
    fn a_granted_lease_brings_the_sweep_forward() {
        let schedule = swept(Some(10_000));
        schedule.record_batch(&batch(0, 5_000));
        assert!(!schedule.is_due(Tick(4_999)));
        assert!(schedule.is_due(Tick(5_000)));
    }

    #[test]
    fn a_lease_granted_during_a_sweep_is_not_missed() {
        let schedule = swept(Some(10_000));
        schedule.begin_sweep();
        schedule.record_batch(&batch(0, 2_000));
        schedule.end_sweep(&sweep(0, None), Tick(100));
        assert!(schedule.is_due(Tick(2_000)));
        assert!(!schedule.is_due(Tick(1_999)));
    }

    #[test]
    fn slow_sweeps_are_rare() {
        // One that took 2 s is repeated after 100 s, unless a lease expires.
        let schedule = ExpirySchedule::new(INTERVAL_MS);
        schedule.begin_sweep();
        schedule.end_sweep(&sweep(0, None), Tick(2_000));
        assert!(!schedule.is_due(Tick(101_999)));
        assert!(schedule.is_due(Tick(102_000)));
    }
}
