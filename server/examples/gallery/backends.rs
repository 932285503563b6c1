//! The backends of the gallery, and how a lock on each of them starts out.

use chrono::TimeDelta;
use domain::backend::{
    BackendKind, BackendStatus, BackendView, Capability, Fault, Right, SourceView, WatchState,
};
use domain::generation::Generation;
use domain::known::Known;
use domain::lock::{Lock, Renewal};
use domain::names::{BackendName, LockId, OwnerId, Resource, Source};
use domain::observation::Coverage;
use domain::safety::{Safety, SafetyClass};
use domain::state::{LockState, Reason};
use domain::token::FencingToken;

use crate::canned::Moment;
use crate::scenes::Scene;

pub(crate) struct Kind {
    pub(crate) name: &'static str,
    kind: BackendKind,
    source: &'static str,
    address: &'static str,
    version: &'static str,
    status: BackendStatus,
    poll_ms: i64,
    fenced: bool,
}

#[rustfmt::skip]
pub(crate) const KINDS: [Kind; 6] = [
    Kind { name: "builtin", kind: BackendKind::Builtin, source: "lease", address: "this server", version: "0.1.0", status: BackendStatus::Live, poll_ms: 1_000, fenced: true },
    Kind { name: "pg-orders", kind: BackendKind::Postgres, source: "table:public.distributed_locks", address: "db-1:5432/orders", version: "PostgreSQL 15.8", status: BackendStatus::Live, poll_ms: 1_000, fenced: true },
    Kind { name: "redis-cache", kind: BackendKind::Redis, source: "key", address: "cache-1:6379", version: "Redis 7.0.15", status: BackendStatus::Live, poll_ms: 2_000, fenced: false },
    Kind { name: "etcd-coord", kind: BackendKind::Etcd, source: "mutex", address: "coord-1:2379", version: "etcd 3.4.23", status: BackendStatus::Stale, poll_ms: 2_000, fenced: true },
    Kind { name: "redis-batch", kind: BackendKind::Redis, source: "key", address: "cache-2:6379", version: "Redis 7.0.15", status: BackendStatus::Partial, poll_ms: 2_000, fenced: false },
    Kind { name: "pg-legacy", kind: BackendKind::Postgres, source: "table:public.locks", address: "old-db:5432/legacy", version: "", status: BackendStatus::Down, poll_ms: 5_000, fenced: true },
];

pub(crate) fn lock(backend: &'static str, resource: &str, now: Moment) -> Lock {
    let kind = KINDS
        .iter()
        .find(|kind| kind.name == backend)
        .unwrap_or(&KINDS[0]);
    let number = resource
        .bytes()
        .fold(7u64, |sum, byte| (sum * 31 + u64::from(byte)) % 99_991);
    let class = if kind.fenced {
        SafetyClass::Correctness
    } else {
        SafetyClass::Efficiency
    };
    let why = if kind.fenced {
        "one database, rising token"
    } else {
        "Redis issues no fencing tokens"
    };
    Lock {
        id: LockId {
            backend: name(backend),
            source: Source::fixed(kind.source),
            resource: Resource::from(resource),
        },
        kind: kind.kind,
        owner_id: Known::unknown("the key's value names no owner"),
        owner_count: 1,
        lease_id: Known::Known(format!("01JT4M2V8K6W3N5C0X{number:05}QZ7")),
        generation: Known::Known(Generation::new(format!("lease:{number}"))),
        fencing_token: if kind.fenced {
            Known::Known(FencingToken::new(number))
        } else {
            Known::absent(why)
        },
        acquired_at: Known::unknown("Redis does not keep when a key was set"),
        expires_at: Known::unknown("this key's shape does not tell"),
        held_ms: Known::unknown("Redis does not keep when a key was set"),
        held_at_least_ms: 0,
        ttl_ms: Known::unknown("not learnt yet"),
        remaining_ms: Known::unknown("not learnt yet"),
        waiter_count: if kind.kind == BackendKind::Redis {
            Known::unknown("Redis keeps no queue")
        } else {
            Known::Known(0)
        },
        state: LockState::Healthy,
        reasons: Vec::new(),
        safety: Safety {
            class,
            why: why.into(),
        },
        renewal: Known::unknown("seen for less than two renewals"),
        observed_at: now.wall,
        age_ms: 400,
        track_ms: None,
        notch_ms: None,
        low_marks_ms: Vec::new(),
        session_bound: false,
    }
}

/// Short ways to say what a row shows.
pub(crate) trait Shape {
    fn own(&mut self, owner: &str, held_ms: i64);
    fn lease(&mut self, ttl_ms: i64, renews: Option<i64>, now: Moment);
    fn session(&mut self);
    fn no_ttl(&mut self);
    fn unrecognised(&mut self);
    fn judge(&mut self, state: LockState, why: &str);
}

impl Shape for Lock {
    fn own(&mut self, owner: &str, held_ms: i64) {
        self.owner_id = Known::Known(OwnerId::new(owner));
        self.held_at_least_ms = held_ms;
        if self.kind != BackendKind::Redis {
            self.held_ms = Known::Known(held_ms);
            self.acquired_at = Known::Known(self.observed_at - TimeDelta::milliseconds(held_ms));
        }
    }

    fn lease(&mut self, ttl_ms: i64, renews: Option<i64>, now: Moment) {
        let since = renews.map_or(now.elapsed_ms % ttl_ms, |every| {
            (now.elapsed_ms + self.held_at_least_ms / 7) % every
        });
        self.ttl_ms = Known::Known(ttl_ms);
        self.track_ms = Some(ttl_ms);
        self.notch_ms = Some(renews.map_or(ttl_ms / 8, |every| (ttl_ms - every * 3 / 2 - 500).max(0)));
        self.remaining_ms = Known::Known(ttl_ms - since);
        self.expires_at = Known::Known(self.observed_at + TimeDelta::milliseconds(ttl_ms - since));
        if let Some(every) = renews {
            let last_at = self.observed_at - TimeDelta::milliseconds(since);
            self.renewal = Known::Known(Renewal {
                last_at,
                last_ago_ms: since,
                interval_ms: every,
                count: 246,
            });
            self.low_marks_ms = [180, 40, -200, 320, 90, -120]
                .map(|late| ttl_ms - every - late)
                .to_vec();
        }
    }

    fn session(&mut self) {
        self.session_bound = true;
        let why = "it lives as long as its session";
        self.ttl_ms = Known::absent(why);
        self.remaining_ms = Known::absent(why);
        self.expires_at = Known::absent(why);
        self.renewal = Known::absent(why);
        self.fencing_token = Known::absent("advisory locks have no tokens");
        self.lease_id = Known::absent(why);
    }

    fn no_ttl(&mut self) {
        let why = "PTTL is \u{2212}1";
        self.ttl_ms = Known::absent(why);
        self.remaining_ms = Known::absent(why);
        self.expires_at = Known::absent(why);
    }

    fn unrecognised(&mut self) {
        self.held_at_least_ms = 90_000;
        self.generation = Known::unknown("a list has no generation");
        self.lease_id = Known::unknown("a list has no lease");
    }

    fn judge(&mut self, state: LockState, why: &str) {
        self.state = state;
        self.reasons = vec![Reason {
            state,
            why: why.to_owned(),
        }];
    }
}

pub(crate) fn name(text: &'static str) -> BackendName {
    BackendName::parse(text).unwrap_or_else(|_| unreachable!("names of the gallery are names"))
}

pub(crate) fn views(scene: Scene, rows: &[Lock], now: Moment) -> Vec<BackendView> {
    let kinds = KINDS.iter().filter(|kind| {
        scene != Scene::Unconfigured && (scene != Scene::Many || kind.status == BackendStatus::Live)
    });
    kinds.map(|kind| view(kind, scene, rows, now)).collect()
}

fn view(kind: &Kind, scene: Scene, rows: &[Lock], now: Moment) -> BackendView {
    let status = scene.status(kind.status);
    let mine: Vec<&Lock> = rows
        .iter()
        .filter(|lock| lock.id.backend.as_str() == kind.name)
        .collect();
    let waiters = mine
        .iter()
        .filter_map(|lock| lock.waiter_count.known())
        .map(|count| u64::from(*count))
        .sum();
    let age_ms = match status {
        BackendStatus::Starting => None,
        BackendStatus::Down if mine.is_empty() => None,
        BackendStatus::Down | BackendStatus::Stale => Some(14_000 + now.elapsed_ms),
        BackendStatus::Live | BackendStatus::Partial => Some(kind.poll_ms * 2 / 5),
    };
    let locks = u64::try_from(mine.len()).unwrap_or(0);
    BackendView {
        name: name(kind.name),
        kind: kind.kind,
        address: kind.address.to_owned(),
        status,
        observed_at: age_ms.map(|age| now.wall - TimeDelta::milliseconds(age)),
        age_ms,
        poll_ms: kind.poll_ms,
        coverage: if status == BackendStatus::Partial {
            Coverage::Partial {
                seen: 4,
                of: Some(5),
                why: "node 5 of 5 does not answer".into(),
            }
        } else {
            Coverage::Complete
        },
        fault: fault(kind, status, now),
        locks,
        waiters: if kind.kind == BackendKind::Redis {
            Known::unknown("Redis keeps no queue")
        } else {
            Known::Known(waiters)
        },
        needing_attention: u64::try_from(mine.iter().filter(|lock| lock.state.needs_attention()).count())
            .unwrap_or(0),
        clock_offset_ms: if status.blinds_rows() {
            Known::unknown("it does not answer")
        } else {
            Known::Known(12 - locks.cast_signed() % 25)
        },
        clock_error_ms: 1,
        answers_ms: answers(status),
        version: if kind.version.is_empty() || status == BackendStatus::Starting {
            Known::unknown("never reached")
        } else {
            Known::Known(kind.version.to_owned())
        },
        watch: WatchState::Live,
        passes: 4_211 + now.beat,
        relist_differences: 0,
        sources: vec![SourceView {
            source: Source::fixed(kind.source),
            locks,
            fault: (status == BackendStatus::Partial).then(|| "node 5 of 5 does not answer".to_owned()),
        }],
        capabilities: capabilities(kind),
        rights: rights(kind),
        past_faults: past_faults(kind, now),
        is_limited: false,
    }
}

fn answers(status: BackendStatus) -> Vec<Option<u32>> {
    let answered = |index: u32| {
        if index.is_multiple_of(11) {
            9
        } else {
            1 + index * 7 % 4
        }
    };
    (0..40u32)
        .map(|index| (!status.blinds_rows() || index < 33).then(|| answered(index)))
        .collect()
}

fn fault(kind: &Kind, status: BackendStatus, now: Moment) -> Option<Fault> {
    let message = match status {
        BackendStatus::Down => format!("{} refused the connection", kind.address),
        BackendStatus::Stale => format!("{} has not answered for 14 s", kind.address),
        _ => return None,
    };
    let mend = "check that it runs and that this machine may reach it".to_owned();
    Some(Fault {
        message,
        mend,
        at: now.wall,
        times: 7,
    })
}

fn past_faults(kind: &Kind, now: Moment) -> Vec<Fault> {
    let past = |minutes: i64, message: &str, times| Fault {
        message: message.to_owned(),
        mend: "nothing to do: it came back by itself".to_owned(),
        at: now.wall - TimeDelta::minutes(minutes),
        times,
    };
    if kind.kind == BackendKind::Etcd {
        return vec![
            past(42, "the watch was compacted away at revision 884120", 1),
            past(95, "no leader", 12),
        ];
    }
    Vec::new()
}

fn capabilities(kind: &Kind) -> Vec<Capability> {
    let redis = kind.kind == BackendKind::Redis;
    let all = [
        ("watch", true, "notifications, and a list every poll"),
        (
            "waiters",
            !redis,
            if redis {
                "Redis keeps no queue"
            } else {
                "from the queue itself"
            },
        ),
        (
            "fencing",
            kind.fenced,
            if kind.fenced {
                "a token per grant"
            } else {
                "Redis issues no tokens"
            },
        ),
        ("ttl", true, "by the backend's own clock"),
        ("release", false, "no unlock account is configured"),
    ];
    all.map(|(name, can, how)| Capability {
        name: name.to_owned(),
        can,
        how: how.to_owned(),
    })
    .to_vec()
}

fn rights(kind: &Kind) -> Vec<Right> {
    let reads = Right {
        what: format!("read {}", kind.source),
        allowed: Known::Known(true),
        wanted: true,
        mend: String::new(),
    };
    let writes = Right {
        what: "write".to_owned(),
        allowed: Known::Known(kind.name == "redis-cache"),
        wanted: false,
        mend: "ACL SETUSER leasehold_watch -@write".to_owned(),
    };
    vec![reads, writes]
}
