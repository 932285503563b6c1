//! Time left of leases: read in parallel with a limit, cached by lease, most urgent first.
//!
//! **Invariant**: a reading keeps the time of its request; an old reading is never shown as a
//! new one.

use std::collections::{HashMap, HashSet};

use domain::observation::Lifetime;
use domain::reported::{Reported, Why};
use domain::tick::Tick;
use etcd_client::LeaseTimeToLiveOptions;
use futures::StreamExt;
use parking_lot::{Mutex, MutexGuard};

use super::connection::Link;
use super::error::{EtcdError, EtcdErrorKind};

/// Concurrent requests.
pub(super) const PARALLEL_MAX: usize = 64;
/// Leases read between two batches of locks.
pub(super) const CHUNK_LEASES: usize = 1_024;
/// etcd reports the maximum duration, 292 years, for a lease whose clock has not started (right
/// after an election). The longest TTL that etcd grants is this, in seconds.
const TTL_S_MAX: i64 = 9_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeaseTimeLeft {
    Ms(i64),
    /// etcd does not know the lease (any more).
    Gone,
    NotStarted,
}

/// etcd's response about one lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reading {
    /// Time of the request: the time left counts from here.
    pub(super) at: Tick,
    pub(super) left: LeaseTimeLeft,
    pub(super) granted_ms: i64,
}

impl Reading {
    /// etcd rounds to whole seconds towards zero. 0 means "less than one second": shown as 1
    /// ms, which is not yet expired.
    fn new(ttl_s: i64, granted_s: i64, at: Tick) -> Self {
        let left = match ttl_s {
            // Unknown lease. An expired known lease reports its granted TTL.
            ..0 if granted_s == 0 => LeaseTimeLeft::Gone,
            TTL_S_MAX.. => LeaseTimeLeft::NotStarted,
            0 => LeaseTimeLeft::Ms(1),
            seconds => LeaseTimeLeft::Ms(seconds * 1000),
        };
        Self {
            at,
            left,
            granted_ms: granted_s.saturating_mul(1000),
        }
    }

    pub(super) fn lifetime(&self) -> Lifetime {
        match self.left {
            LeaseTimeLeft::Ms(remaining_ms) => Lifetime::Leased {
                remaining_ms,
                ttl_ms: Reported::Value(self.granted_ms),
            },
            LeaseTimeLeft::Gone => Lifetime::Leased {
                remaining_ms: 0,
                ttl_ms: Reported::unknown("etcd no longer knows the lease"),
            },
            LeaseTimeLeft::NotStarted => Lifetime::Unknown {
                why: "etcd has just elected a leader and has not started this lease's clock again".into(),
            },
        }
    }

    /// Time left at `now` without a renewal: for ordering only.
    fn aged_ms(&self, now: Tick) -> i64 {
        match self.left {
            LeaseTimeLeft::Ms(ms) => ms - now.since(self.at),
            LeaseTimeLeft::Gone => i64::MIN,
            LeaseTimeLeft::NotStarted => 0,
        }
    }
}

/// The last reading of each lease.
#[derive(Debug, Default)]
pub(super) struct Leases(Mutex<HashMap<i64, Reading>>);

/// Leases to read, each list nearest to its end first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Never read, or long ago.
    pub(super) must: Vec<i64>,
    /// Read recently: read again if there is time.
    pub(super) may: Vec<i64>,
}

impl Leases {
    /// `age_max_ms`: highest age at which a reading may be reused.
    pub(super) fn plan(&self, leases: impl IntoIterator<Item = i64>, now: Tick, age_max_ms: i64) -> Plan {
        let known = self.known();
        let mut must = Vec::new();
        let mut may = Vec::new();
        for lease in leases {
            match known.get(&lease) {
                Some(reading) if now.since(reading.at) <= age_max_ms => {
                    may.push((reading.aged_ms(now), lease))
                }
                Some(reading) => must.push((reading.aged_ms(now), lease)),
                None => must.push((i64::MIN, lease)),
            }
        }
        must.sort_unstable();
        may.sort_unstable();
        let ids = |list: Vec<(i64, i64)>| list.into_iter().map(|(_, lease)| lease).collect();
        Plan {
            must: ids(must),
            may: ids(may),
        }
    }

    pub(super) fn get(&self, lease: i64) -> Option<Reading> {
        self.known().get(&lease).copied()
    }

    /// Drops leases without a lock.
    pub(super) fn retain(&self, seen: &HashSet<i64>) {
        self.known().retain(|lease, _| seen.contains(lease));
    }

    /// Reads `leases`; all responses count from the time before the first request. Dropping
    /// this future keeps the responses so far.
    ///
    /// # Errors
    /// The last error, if a lease could not be read; the others were.
    pub(super) async fn read(&self, link: &Link, leases: &[i64]) -> Result<(), EtcdError> {
        let at = link.clock.tick();
        let mut failed = Ok(());
        let mut answers = futures::stream::iter(leases.iter().copied())
            .map(|lease| async move { (lease, query_lease(link, lease, at).await) })
            .buffer_unordered(PARALLEL_MAX);
        while let Some((lease, answer)) = answers.next().await {
            match answer {
                Ok(reading) => {
                    self.known().insert(lease, reading);
                }
                Err(fault) => {
                    let out_of_reach = fault.kind == EtcdErrorKind::Transport;
                    failed = Err(fault);
                    if out_of_reach {
                        // The other requests would wait for the same timeout.
                        break;
                    }
                }
            }
        }
        failed
    }

    fn known(&self) -> MutexGuard<'_, HashMap<i64, Reading>> {
        self.0.lock()
    }
}

async fn query_lease(link: &Link, lease: i64, at: Tick) -> Result<Reading, EtcdError> {
    let answer = link
        .call(|client| async move { client.lease_client().time_to_live(lease, None).await })
        .await?;
    Ok(Reading::new(answer.ttl(), answer.granted_ttl(), at))
}

/// A lease with all of its keys.
pub(super) async fn with_keys(link: &Link, lease: i64) -> Result<(Reading, Vec<Vec<u8>>), EtcdError> {
    let at = link.clock.tick();
    let options = LeaseTimeToLiveOptions::new().with_keys();
    let answer = link
        .call(|client| {
            let options = options.clone();
            async move { client.lease_client().time_to_live(lease, Some(options)).await }
        })
        .await?;
    Ok((
        Reading::new(answer.ttl(), answer.granted_ttl(), at),
        answer.keys().to_vec(),
    ))
}

/// Why the time left of a lock is unknown.
pub(super) fn unread(why: Option<&EtcdError>) -> Why {
    match why {
        Some(fault) => format!("its lease could not be read: {}", fault.error).into(),
        None => "its lease was not read within `scan_timeout`".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lease_seconds_of_etcd_are_interpreted() {
        // Positive, in its last second, expired, unknown, and just after an election.
        assert_eq!(Reading::new(21, 30, Tick(5)).left, LeaseTimeLeft::Ms(21_000));
        assert_eq!(Reading::new(0, 30, Tick(5)).left, LeaseTimeLeft::Ms(1));
        assert_eq!(Reading::new(-3, 30, Tick(5)).left, LeaseTimeLeft::Ms(-3000));
        assert_eq!(Reading::new(-1, 0, Tick(5)).left, LeaseTimeLeft::Gone);
        assert_eq!(
            Reading::new(9_223_372_036, 30, Tick(5)).left,
            LeaseTimeLeft::NotStarted
        );
    }

    #[test]
    fn leases_near_their_end_are_read_first() {
        // 1 is fresh with little left, 2 fresh with much, 3 old, 4 never read.
        let leases = Leases::default();
        let reading = |at, ms| Reading {
            at: Tick(at),
            left: LeaseTimeLeft::Ms(ms),
            granted_ms: 30_000,
        };
        leases.known().extend([
            (1, reading(9_000, 2_000)),
            (2, reading(9_500, 20_000)),
            (3, reading(0, 30_000)),
        ]);
        let plan = leases.plan([1, 2, 3, 4], Tick(10_000), 4_000);
        assert_eq!(
            plan,
            Plan {
                must: vec![4, 3],
                may: vec![1, 2]
            }
        );
    }
}
