//! The backends of the gallery, and what they report about themselves.

use ::backends::Probe;
use chrono::TimeDelta;
use domain::backend::{
    AccountPermission, BackendFailure, BackendKind, BackendStatus, BackendTraits, Capability, ClusterMember,
    ClusterView, MemberRole,
};
use domain::names::BackendName;
use domain::reported::Reported;
use domain::safety::{Safety, SafetyClass};
use inventory::BackendInfo;

use crate::canned::Moment;

pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) kind: BackendKind,
    pub(crate) source: &'static str,
    address: &'static str,
    version: &'static str,
    /// In the full scene.
    pub(crate) status: BackendStatus,
    poll_interval_ms: i64,
    pub(crate) fenced: bool,
}

#[rustfmt::skip]
pub(crate) const KINDS: [Kind; 6] = [
    Kind { name: "builtin", kind: BackendKind::Builtin, source: "lease", address: "this server", version: "0.1.0", status: BackendStatus::Live, poll_interval_ms: 1_000, fenced: true },
    Kind { name: "pg-orders", kind: BackendKind::Postgres, source: "table:public.distributed_locks", address: "db-1:5432/orders", version: "PostgreSQL 15.8", status: BackendStatus::Live, poll_interval_ms: 1_000, fenced: true },
    Kind { name: "redis-cache", kind: BackendKind::Redis, source: "key", address: "cache-1:6379", version: "Redis 7.0.15", status: BackendStatus::Live, poll_interval_ms: 2_000, fenced: false },
    Kind { name: "etcd-coord", kind: BackendKind::Etcd, source: "mutex", address: "coord-1:2379", version: "etcd 3.4.23", status: BackendStatus::Stale, poll_interval_ms: 2_000, fenced: true },
    Kind { name: "redis-batch", kind: BackendKind::Redis, source: "key", address: "cache-2:6379", version: "Redis 7.0.15", status: BackendStatus::Partial, poll_interval_ms: 2_000, fenced: false },
    Kind { name: "pg-legacy", kind: BackendKind::Postgres, source: "table:public.locks", address: "old-db:5432/legacy", version: "PostgreSQL 9.6", status: BackendStatus::Down, poll_interval_ms: 5_000, fenced: true },
];

impl Kind {
    pub(crate) fn backend_name(&self) -> BackendName {
        BackendName::parse(self.name).unwrap_or_else(|_| unreachable!("names of the gallery are names"))
    }

    /// Backends without a queue keep no time of acquisition either.
    pub(crate) fn has_queue(&self) -> bool {
        self.kind != BackendKind::Redis
    }

    /// `poll_interval_ms` instead of its own, where a scan takes long.
    pub(crate) fn info(&self, poll_interval_ms: Option<i64>) -> BackendInfo {
        BackendInfo {
            name: self.backend_name(),
            kind: self.kind,
            address: self.address.to_owned(),
            poll_interval_ms: poll_interval_ms.unwrap_or(self.poll_interval_ms),
            capabilities: self.capabilities(),
            traits: BackendTraits {
                counts_grants: self.kind == BackendKind::Builtin,
                watches_every_change: self.kind == BackendKind::Etcd,
                lacks_fencing_tokens: !self.fenced,
            },
        }
    }

    pub(crate) fn safety(&self) -> Safety {
        let (class, why) = if self.fenced {
            (SafetyClass::Correctness, "one database, rising token")
        } else {
            (SafetyClass::Efficiency, "Redis issues no fencing tokens")
        };
        Safety {
            class,
            why: why.into(),
        }
    }

    pub(crate) fn probe(&self) -> Probe {
        Probe {
            version: Reported::Value(self.version.to_owned()),
            rights: self.permissions(),
        }
    }

    /// Members of the two that are clusters: one lost a member, the other its majority.
    pub(crate) fn cluster(&self, now: Moment) -> Option<ClusterView> {
        let silent_members = match self.kind {
            BackendKind::Builtin => 1,
            BackendKind::Etcd => 2,
            _ => return None,
        };
        let member = |place: usize| {
            let is_silent = place < silent_members;
            let role = match place {
                _ if silent_members == 2 => MemberRole::NoLeader,
                2 => MemberRole::Leader,
                _ => MemberRole::Follower,
            };
            ClusterMember {
                name: format!("etcd-{}", place + 1),
                address: format!("https://etcd-{}.example.com:2379", place + 1),
                fault: is_silent.then(|| "no answer within 1000 ms".to_owned()),
                answered_at: Some(now.wall - TimeDelta::seconds(if is_silent { 254 } else { 0 })),
                role: reported(!is_silent, role),
                version: reported(!is_silent, "3.5.16".to_owned()),
                size_bytes: reported(!is_silent, if place == 2 { 1_740_000_000 } else { 412_000_000 }),
                quota_bytes: reported(!is_silent, 2_147_483_648),
                behind_leader: reported(!is_silent && silent_members == 1, if place == 1 { 3 } else { 0 }),
                unapplied: reported(!is_silent, 0),
                alarms: Vec::new(),
            }
        };
        let mut view = ClusterView {
            shard: None,
            asked_at: now.wall,
            age_ms: 0,
            voters: Reported::Value(3),
            counted_since: now.wall - TimeDelta::hours(30),
            leader_changes: 2,
            leader_changed_at: Some(now.wall - TimeDelta::seconds(252)),
            members: (0..3).map(member).collect(),
        };
        view.sort_members();
        Some(view)
    }

    /// Why a scan fails while it has this status.
    pub(crate) fn failure(&self, status: BackendStatus, now: Moment) -> BackendFailure {
        let message = match status {
            BackendStatus::Stale => format!("{} does not answer", self.address),
            _ => format!("{} refused the connection", self.address),
        };
        BackendFailure {
            message,
            remedy: "check that it runs and that this machine may reach it".to_owned(),
            at: now.wall,
            times: 1,
        }
    }

    /// Failures that are over, oldest first.
    pub(crate) fn past_failures(&self, now: Moment) -> Vec<BackendFailure> {
        let past = |minutes: i64, message: &str, times| BackendFailure {
            message: message.to_owned(),
            remedy: "nothing to do: it came back by itself".to_owned(),
            at: now.wall - TimeDelta::minutes(minutes),
            times,
        };
        match self.kind {
            BackendKind::Etcd => vec![
                past(95, "no leader", 12),
                past(42, "the watch was compacted away at revision 884120", 1),
            ],
            _ => Vec::new(),
        }
    }

    fn capabilities(&self) -> Vec<Capability> {
        let has_queue = self.has_queue();
        let waiters = if has_queue {
            "from the queue itself"
        } else {
            "Redis keeps no queue"
        };
        let fencing = if self.fenced {
            "a token per grant"
        } else {
            "Redis issues no tokens"
        };
        let all = [
            ("watch", true, "notifications, and a list every poll"),
            ("waiters", has_queue, waiters),
            ("fencing", self.fenced, fencing),
            ("ttl", true, "by the backend's own clock"),
            ("release", false, "no unlock account is configured"),
        ];
        all.map(|(name, can, how)| Capability::new(name, can, how))
            .to_vec()
    }

    fn permissions(&self) -> Vec<AccountPermission> {
        let reads = AccountPermission {
            what: format!("read {}", self.source),
            allowed: Reported::Value(true),
            wanted: true,
            remedy: String::new(),
        };
        let writes = AccountPermission {
            what: "write".to_owned(),
            allowed: Reported::Value(self.name == "redis-cache"),
            wanted: false,
            remedy: "ACL SETUSER leasehold_watch -@write".to_owned(),
        };
        vec![reads, writes]
    }
}

fn reported<T>(is_known: bool, value: T) -> Reported<T> {
    match is_known {
        true => Reported::Value(value),
        false => Reported::unknown("it does not answer"),
    }
}
