//! The past of the demo: a thinned day of its locks, so that charts and baselines of a new console have data.
//!
//! Follows the behaviours of `worker.rs` with the names of `names.rs`. Never a lock that the demo does not have.

use std::time::Duration;

use domain::backend::BackendKind;
use domain::history::simulated_past::{SimulatedBackend, SimulatedHold, SimulatedPast};
use domain::names::{BackendName, NameError, Resource, Source};

use super::scenarios::{self, Workload};
use super::worker::LeaseTiming;
use super::{consul, deadlock, etcd, names, rng, zookeeper};
use config::BackendConfig;

const S: i64 = 1_000;
const M: i64 = 60 * S;
const H: i64 = 60 * M;

/// Workloads with backend, source and the prefix of their names.
const WORKLOADS: [(&str, &str, &str, &Workload); 8] = [
    ("orders-db", "table:public.distributed_locks", "", &names::TABLE),
    ("redis-cache", "key", "lock:", &names::CACHE_JSON),
    ("redis-cache", "key", "lock:", &names::CACHE_RAW),
    ("redis-cache", "hash", "lock:", &names::CACHE_HASHES),
    ("cache-eu", "key", "lock:", &names::CACHE_EU),
    ("payments-redlock", "redlock", "lock:", &names::REDLOCK),
    ("etcd-coord", "key", etcd::PREFIX, &names::COORD),
    ("builtin", "lease", "", &names::SERVICE),
];

/// Locks with a queue: backend, source, name, owners.
const QUEUES: [(&str, &str, &str, &[&str]); 4] = [
    ("etcd-coord", "mutex", etcd::mutex::CONTENDED, &STATEMENT_OWNERS),
    ("zk-plan", "node", zookeeper::CONTENDED, &zookeeper::CONTENDERS),
    ("consul-dc1", "kv", consul::CONTENDED, &consul::CONTENDERS),
    ("builtin", "lease", names::QUEUE_LOCK, &names::QUEUE_OWNERS),
];

/// As etcd shows them: owners of its mutexes are keys of leases.
const STATEMENT_OWNERS: [&str; 4] = ["694d9a1c03", "694d9a1c07", "694d9a1c0b", "694d9a1c0f"];

/// The past of the lease service and of these backends, of this length before `until` (milliseconds since 1970).
pub(super) fn simulate(
    backends: &[BackendConfig],
    length: Duration,
    until: i64,
) -> Result<SimulatedPast, NameError> {
    let from = until - i64::try_from(length.as_millis()).unwrap_or(0);
    let builtin = (BackendName::builtin(), BackendKind::Builtin);
    let configured = backends
        .iter()
        .map(|backend| (backend.name.clone(), backend.system.kind()));
    let backends: Vec<SimulatedBackend> = configured
        .chain([builtin])
        .map(|(name, kind)| SimulatedBackend {
            name,
            kind,
            reports_waiters: kind.reports_waiters(),
        })
        .collect();
    let mut holds = Vec::new();
    for (backend, source, prefix, workload) in WORKLOADS {
        let location = LockLocation::parse(backend, source)?;
        workload_holds(&location, prefix, workload, (from, until), &mut holds);
    }
    for (backend, source, name, owners) in QUEUES {
        let location = LockLocation::parse(backend, source)?;
        queue_holds(&location, name, owners, (from, until), &mut holds);
    }
    deadlock_holds(until - 5 * H, &mut holds)?;
    holds.retain(|hold| backends.iter().any(|backend| backend.name == hold.backend));
    Ok(SimulatedPast {
        from,
        until,
        backends,
        holds,
    })
}

struct LockLocation {
    backend: BackendName,
    source: Source,
}

impl LockLocation {
    fn parse(backend: &str, source: &str) -> Result<Self, NameError> {
        Ok(Self {
            backend: BackendName::parse(backend)?,
            source: Source::parse(source)?,
        })
    }

    /// Released by its owner and never renewed.
    fn hold(
        &self,
        resource: &str,
        owner: &str,
        (began, ended): (i64, i64),
        ttl_ms: impl Into<Option<u32>>,
    ) -> SimulatedHold {
        SimulatedHold {
            backend: self.backend.clone(),
            source: self.source.clone(),
            resource: Resource::from(resource),
            owner: owner.to_owned(),
            began,
            ended,
            is_expired: false,
            ttl_ms: ttl_ms.into(),
            renews_every_ms: None,
            silent_ms: 0,
            waiters: 0,
        }
    }
}

fn workload_holds(
    location: &LockLocation,
    prefix: &str,
    workload: &Workload,
    span: (i64, i64),
    holds: &mut Vec<SimulatedHold>,
) {
    for &(resource, owner, timing) in workload.steady {
        let owner = if owner.is_empty() { "9f1c52aa:27" } else { owner };
        let name = format!("{prefix}{resource}");
        cycles(span, (3 * H, 5 * H), (20 * S, 90 * S), |began, ended| {
            holds.push(SimulatedHold {
                renews_every_ms: Some(ms(timing.interval)),
                ..location.hold(&name, owner, (began, ended), ttl_ms(timing))
            });
        });
    }
    let silent = scenarios::SILENT;
    for resource in workload.silent {
        let name = format!("{prefix}{resource}");
        cycles(span, (46 * S, 46 * S), (10 * M, 30 * M), |began, ended| {
            holds.push(SimulatedHold {
                is_expired: true,
                renews_every_ms: Some(ms(silent.interval)),
                silent_ms: ms(silent.ttl),
                ..location.hold(
                    &name,
                    rng::pick(&scenarios::SILENT_OWNERS),
                    (began, ended),
                    ttl_ms(silent),
                )
            });
        });
    }
    for resource in workload.unrenewed {
        let name = format!("{prefix}{resource}");
        let length = ms(scenarios::UNRENEWED_TTL);
        cycles(span, (length, length), (5 * M, 12 * M), |began, ended| {
            let owner = rng::pick(&scenarios::UNRENEWED_OWNERS);
            holds.push(SimulatedHold {
                is_expired: true,
                ..location.hold(&name, owner, (began, ended), 40_000)
            });
        });
    }
    for resource in workload.short_jobs {
        let name = format!("{prefix}{resource}");
        cycles(span, (2 * S, 10 * S), (2 * M, 5 * M), |began, ended| {
            let owner = rng::pick(&scenarios::SHORT_JOB_OWNERS);
            holds.push(location.hold(&name, owner, (began, ended), 15_000));
        });
    }
}

/// Owners hold the lock in turn, with more waiters by day.
fn queue_holds(
    location: &LockLocation,
    name: &str,
    owners: &[&str],
    span: (i64, i64),
    holds: &mut Vec<SimulatedHold>,
) {
    let mut next_owners = owners.iter().cycle();
    cycles(span, (40 * S, 80 * S), (0, 0), |began, ended| {
        let owner = next_owners.next().copied().unwrap_or_default();
        let waiters_max = i64::try_from(owners.len()).unwrap_or(1) - 1;
        let waiters = u32::try_from((waiters_max * load_permille(began) + 500) / 1_000).unwrap_or(0);
        holds.push(SimulatedHold {
            renews_every_ms: Some(10 * S),
            waiters,
            ..location.hold(name, owner, (began, ended), 30_000)
        });
    });
}

/// A deadlock of two workers, as `deadlock.rs` makes it: each holds one lock and waits for the other's. After six minutes the
/// holder of the advisory lock is evicted, and the leader goes on.
fn deadlock_holds(began: i64, holds: &mut Vec<SimulatedHold>) -> Result<(), NameError> {
    let [leader, evicted] = deadlock::WORKERS;
    let (evicted_at, ended) = (began + 6 * M, began + 6 * M + 20 * S);
    let election = LockLocation::parse("etcd-coord", "mutex")?;
    holds.push(SimulatedHold {
        ttl_ms: Some(u32::try_from(deadlock::TTL.as_millis()).unwrap_or(u32::MAX)),
        renews_every_ms: Some(ms(deadlock::RENEW_EVERY)),
        waiters: 1,
        ..election.hold(deadlock::ELECTION, leader, (began, ended), None)
    });
    let database = LockLocation::parse("orders-db", "advisory")?;
    for (owner, span, waiters) in [
        (evicted, (began + S, evicted_at), 1),
        (leader, (evicted_at, ended), 0),
    ] {
        holds.push(SimulatedHold {
            waiters,
            ..database.hold(deadlock::ADVISORY, owner, span, None)
        });
    }
    Ok(())
}

/// Calls `hold` with begin and end of one holding after the other. Pauses are longer by night.
fn cycles((from, until): (i64, i64), length: (i64, i64), pause: (i64, i64), mut hold: impl FnMut(i64, i64)) {
    let mut began = from + between((0, length.1.min(5 * M)));
    loop {
        let ended = began + between(length);
        if ended >= until {
            return;
        }
        hold(began, ended);
        let pause = between(pause) * 1_000 / load_permille(began);
        began = ended + pause;
    }
}

/// Load at this time, in thousandths of the day's peak: all of it at 14:00 UTC, a third at 02:00.
fn load_permille(at: i64) -> i64 {
    let (day, peak) = (24 * H, 14 * H);
    let distance = (at.rem_euclid(day) - peak).abs();
    1_000 - distance.min(day - distance) * 660 / (12 * H)
}

fn between((shortest, longest): (i64, i64)) -> i64 {
    let spread = u64::try_from(longest - shortest).unwrap_or(0);
    shortest + i64::try_from(rng::below(spread + 1)).unwrap_or(0)
}

fn ms(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

fn ttl_ms(timing: LeaseTiming) -> u32 {
    u32::try_from(timing.ttl.as_millis()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-04-18 15:00 UTC.
    const NOON: i64 = 1_776_524_400_000;

    #[test]
    fn holds_of_one_lock_follow_each_other_within_the_past() {
        // Without a configured backend: the lease service alone, with its steady locks and its queue.
        let past = simulate(&[], Duration::from_secs(24 * 3_600), NOON).unwrap();
        assert_eq!(past.backends.len(), 1);
        let mut holds: Vec<_> = past.holds.iter().collect();
        holds.sort_by(|a, b| (&a.resource, a.began).cmp(&(&b.resource, b.began)));
        assert!(holds.len() > 1_000, "{}", holds.len());
        for hold in &holds {
            assert!(
                hold.backend == BackendName::builtin() && hold.began < hold.ended,
                "{hold:?}"
            );
            assert!(past.from <= hold.began && hold.ended <= past.until, "{hold:?}");
        }
        for pair in holds
            .windows(2)
            .filter(|pair| pair[0].resource == pair[1].resource)
        {
            assert!(pair[0].ended <= pair[1].began, "{pair:?}");
        }
        assert!(holds.iter().any(|hold| hold.waiters > 0));
    }

    #[test]
    fn a_deadlock_holds_two_locks_with_a_waiter_each_for_minutes() {
        let mut holds = Vec::new();
        deadlock_holds(NOON, &mut holds).unwrap();
        let [election, evicted, next] = &holds[..] else {
            panic!("{holds:?}")
        };
        assert_eq!((election.waiters, evicted.waiters, next.waiters), (1, 1, 0));
        assert!(election.began < evicted.began && evicted.ended - evicted.began > 5 * M);
        assert_eq!((&next.owner, next.began), (&election.owner, evicted.ended));
    }

    #[test]
    fn load_has_its_peak_by_day() {
        assert_eq!(
            (load_permille(NOON - H), load_permille(NOON + 11 * H)),
            (1_000, 340)
        );
    }
}
