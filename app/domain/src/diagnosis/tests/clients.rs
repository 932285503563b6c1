//! Renewal habits of client libraries: a healthy holder is never flagged, a dead one always
//! before its lease ends.
//!
//! The clock is simulated: a scan per default poll interval, and one more reading when the
//! diagnosis predicts a change before the next scan. As on Redis, the TTL is the largest time
//! left observed.

use super::*;
use crate::renewal_interval::Cadence;
use crate::tick::Tick;

const POLL_MS: i64 = 2_000;

/// A client library and its renewal habit.
struct Client {
    name: &'static str,
    ttl_ms: i64,
    /// Interval between renewals; `None`: never renews.
    every_ms: Option<i64>,
}

const fn client(name: &'static str, ttl_ms: i64, every_ms: Option<i64>) -> Client {
    Client {
        name,
        ttl_ms,
        every_ms,
    }
}

const CLIENTS: [Client; 12] = [
    client("python-redis-lock, 10 s: at two thirds", 10_000, Some(6_667)),
    client("python-redis-lock, 60 s: at two thirds", 60_000, Some(40_000)),
    client(
        "redlock using(), 5 s: 500 ms before the end, less drift",
        5_000,
        Some(4_448),
    ),
    client("redlock using(), 30 s", 30_000, Some(29_198)),
    client("aioredlock, 10 s: at 60 %", 10_000, Some(6_000)),
    client("aioredlock, 30 s", 30_000, Some(18_000)),
    client("redis-py, 6 s, reacquired every 2 s", 6_000, Some(2_000)),
    client("redis-py, 6 s, reacquired every 4 s", 6_000, Some(4_000)),
    client("redis-py, 6 s, never extended", 6_000, None),
    client("Redisson, 30 s: at one third", 30_000, Some(10_000)),
    client("etcd session, 60 s: at one third", 60_000, Some(20_000)),
    client("a late holder, 30 s renewed after 25 s", 30_000, Some(25_000)),
];

/// State learnt about one lock.
struct Watched {
    track_ms: i64,
    deadline: i64,
    read_at: i64,
    cadence: Option<Cadence>,
}

impl Watched {
    fn read(before: Option<Self>, at: i64, deadline: i64) -> Self {
        let Some(mut one) = before else {
            return Self {
                track_ms: deadline - at,
                deadline,
                read_at: at,
                cadence: None,
            };
        };
        one.track_ms = one.track_ms.max(deadline - at);
        if deadline - one.deadline > 250 {
            let renewed = (deadline - one.track_ms).clamp(one.read_at, at);
            let low = one.deadline - renewed;
            let used = one.track_ms - low;
            match &mut one.cadence {
                Some(cadence) => cadence.renewed(Tick(renewed), low, used),
                None => one.cadence = Some(Cadence::begin(Tick(renewed), low, used)),
            }
        }
        Self {
            deadline,
            read_at: at,
            ..one
        }
    }

    fn facts(&self) -> Facts<'static> {
        let cadence = self.cadence.as_ref();
        Facts {
            lifetime: LifetimeFacts::Leased {
                remaining_ms: self.deadline - self.read_at,
                track_ms: self.track_ms,
            },
            cadence: cadence.and_then(|cadence| {
                Some(CadenceFacts {
                    interval_ms: cadence.interval_ms()?,
                    longest_ms: cadence.longest_ms()?,
                    silent_ms: self.read_at - cadence.last().0,
                })
            }),
            renewals: cadence.map_or(0, Cadence::count),
            near_below_ms: cadence
                .map(|cadence| near_below_ms(cadence.used_max_ms(), self.track_ms, 251 + POLL_MS, 1)),
            sampling_ms: 251 + POLL_MS,
            ..leased(0, None)
        }
    }
}

/// Every reading until the lease has ended: the state, the renewals observed, and how long the
/// holder has been dead.
fn observe(client: &Client, dies_at: i64, scans_from: i64) -> Vec<(LockState, u32, i64)> {
    let deadline = |at: i64| {
        let alive = at.min(dies_at);
        let renewed = client.every_ms.map_or(0, |every| alive / every * every);
        renewed + client.ttl_ms
    };
    let (mut at, mut scan_at) = (scans_from, scans_from + POLL_MS);
    let (mut watched, mut seen) = (None, Vec::new());
    while at < deadline(at) {
        let reading = Watched::read(watched.take(), at, deadline(at));
        let facts = reading.facts();
        seen.push((diagnose(&facts).worst(), facts.renewals, at - dies_at));
        let changes_at = changes_after_ms(&facts).map_or(i64::MAX, |ms| at + ms.max(50));
        watched = Some(reading);
        if changes_at < scan_at {
            at = changes_at;
        } else {
            at = scan_at;
            scan_at += POLL_MS;
        }
    }
    seen
}

#[test]
fn a_dead_holder_is_flagged_before_its_lease_ends() {
    // Each client dies after forty leases, at any phase of the scans and of its own interval.
    for client in &CLIENTS {
        for phase in (0..POLL_MS).step_by(170) {
            for more in (0..client.ttl_ms).step_by(997) {
                let dies_at = client.every_ms.map_or(0, |every| every * 40) + more;
                let seen = observe(client, dies_at, phase);
                let last = seen.last().unwrap().0;
                assert!(
                    matches!(last, LockState::NearExpiry | LockState::NotRenewing),
                    "{}: {last:?} at its end, scans from {phase} ms, dead {more} ms into an interval",
                    client.name
                );
            }
        }
    }
}

#[test]
fn a_steady_renewer_is_never_flagged() {
    for client in CLIENTS.iter().filter(|client| client.every_ms.is_some()) {
        for phase in (0..POLL_MS).step_by(170) {
            let dies_at = client.every_ms.unwrap() * 40;
            let flagged = observe(client, dies_at, phase)
                .into_iter()
                .find(|(state, renewals, dead_ms)| {
                    *state != LockState::Healthy && *renewals > 0 && *dead_ms < 0
                });
            assert_eq!(flagged, None, "{}, scans from {phase} ms", client.name);
        }
    }
}
