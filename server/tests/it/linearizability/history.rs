//! The record of a run: every call with its answer, the requests to the protected resource, and the rows of the store.
//!
//! Times are microseconds of the clock that all processes of a machine share (`CLOCK_MONOTONIC`). A call without an
//! answer has an unknown outcome, never a failed one.

use serde::{Deserialize, Serialize};

pub(super) type Micros = i64;

/// All input of the checker.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    pub(super) calls: Vec<Call>,
    /// Requests to protected resources, in the order of their decisions.
    pub(super) accesses: Vec<Access>,
    /// The store's leases, as they are after the run.
    pub(super) rows: Vec<HistoryRow>,
    /// Names of reporters in the store's fencing rejections.
    pub(super) ledger: Vec<String>,
    pub(super) deaths: Vec<Death>,
    /// The longest life of a lease that the servers were configured with.
    pub(super) lifetime_ms_max: i64,
    /// Time for which a lease stays held after its expiry, on stores that several clocks judge.
    pub(super) margin_ms: i64,
    /// The store's clock was set ahead: leases may end early.
    pub(super) clock_moved: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Call {
    pub(super) client: u32,
    /// Before the request was sent.
    pub(super) begin: Micros,
    /// After the answer was read; none: unknown outcome.
    pub(super) end: Option<Micros>,
    pub(super) what: OperationKind,
    pub(super) answer: RecordedAnswer,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum OperationKind {
    /// `owner` is used for this one call.
    Acquire {
        resource: String,
        owner: String,
        ttl_ms: i64,
    },
    Renew(HeldLease),
    Release(HeldLease),
    /// The lease, read by its id.
    Read(HeldLease),
    Look {
        resource: String,
    },
    /// A rejection by the protected resource, reported to the service under a name used once.
    Report {
        source: String,
    },
}

/// A grant as its client received it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HeldLease {
    pub(super) resource: String,
    pub(super) lease: String,
    pub(super) token: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum RecordedAnswer {
    /// Timed out, cut off, or an error that leaves it open.
    Unknown,
    Granted {
        lease: String,
        token: u64,
    },
    /// Because of the lease of this token.
    Refused {
        token: u64,
        owner: String,
    },
    /// Without a live lease: waiters are next, this many.
    RefusedForWaiters(u64),
    Renewed,
    /// Read, and live.
    Alive,
    /// Live, at its maximum lifetime: it cannot be renewed any more.
    AtCap,
    Released,
    /// Renew, release or reading found that it had ended.
    Lost,
    Holder {
        last: u64,
        holder: Option<(u64, String)>,
    },
    Reported,
    /// A violation of the contract.
    Unexpected(String),
}

/// One request to a protected resource.
#[derive(Debug, Clone)]
pub(super) struct Access {
    pub(super) resource: String,
    pub(super) token: u64,
    /// Whether this register compares tokens.
    pub(super) fenced: bool,
    pub(super) kind: EventKind,
    pub(super) accepted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventKind {
    Read,
    /// Adds one to the version that was read.
    Write {
        base: u64,
    },
}

/// A lease as stored; times in milliseconds of the store's clock.
#[derive(Debug, Clone)]
pub(super) struct HistoryRow {
    pub(super) lease: String,
    pub(super) resource: String,
    pub(super) owner: String,
    pub(super) token: u64,
    pub(super) acquired_ms: i64,
    pub(super) renewed_ms: i64,
    pub(super) expires_ms: i64,
    /// When and how it ended.
    pub(super) ended: Option<(i64, String)>,
    pub(super) ttl_ms: i64,
}

/// A client that was killed; its leases have to be free after `bound_ms` and the store's margin.
#[derive(Debug, Clone)]
pub(super) struct Death {
    pub(super) client: u32,
    pub(super) at: Micros,
    pub(super) bound_ms: i64,
}

/// `CLOCK_MONOTONIC`, the same for every process of this machine.
pub(super) fn now() -> Micros {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
}
