//! All metrics: name, kind, description, attributes, buckets. A test compares docs/monitoring.md with this table.
//!
//! **Invariant:** names of locks, owners, tokens and users are never attributes; only templates of names, limited in
//! number.

pub const BACKEND: &str = "distributed_lock.backend";
pub const SYSTEM: &str = "distributed_lock.system.name";
pub const PREFIX: &str = "distributed_lock.prefix";
pub const OUTCOME: &str = "outcome";
pub const END: &str = "end";
pub const CAUSE: &str = "cause";
pub const PROTECTED: &str = "protected";
pub const DETECTOR: &str = "detector";
pub const OPERATION: &str = "operation";
pub const SEVERITY: &str = "severity";
pub const RULE: &str = "rule";
pub const ERROR_TYPE: &str = "error.type";
pub const METHOD: &str = "http.request.method";
pub const ROUTE: &str = "http.route";
pub const STATUS: &str = "http.response.status_code";
pub const DB_SYSTEM: &str = "db.system.name";
pub const DB_OPERATION: &str = "db.operation.name";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    Counter,
    Histogram,
    UpDown,
    Gauge,
}

impl MetricKind {
    pub const fn label(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Histogram => "histogram",
            Self::UpDown => "up-down counter",
            Self::Gauge => "gauge",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Metric {
    pub name: &'static str,
    pub kind: MetricKind,
    pub unit: &'static str,
    pub help: &'static str,
    pub attributes: &'static [&'static str],
    /// Upper bounds of histogram buckets in seconds.
    pub bounds: &'static [f64],
}

const fn new(
    name: &'static str,
    kind: MetricKind,
    unit: &'static str,
    attributes: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric {
        name,
        kind,
        unit,
        help,
        attributes,
        bounds: &[],
    }
}

const fn histogram(
    name: &'static str,
    attributes: &'static [&'static str],
    bounds: &'static [f64],
    help: &'static str,
) -> Metric {
    Metric {
        bounds,
        ..new(name, MetricKind::Histogram, "s", attributes, help)
    }
}

const WAITS: &[f64] = &[
    0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0,
];
const HOLDS: &[f64] = &[
    0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 86_400.0,
];
const OPERATIONS: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
];
const REQUESTS: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

pub const ACQUIRE_ATTEMPTS: Metric = new(
    "distributed_lock.acquire.attempts",
    MetricKind::Counter,
    "{attempt}",
    &[BACKEND, SYSTEM, PREFIX, OUTCOME],
    "Attempts to acquire a lock, by outcome",
);
pub const WAIT_DURATION: Metric = histogram(
    "distributed_lock.wait.duration",
    &[BACKEND, SYSTEM, PREFIX, OUTCOME],
    WAITS,
    "Time that owners waited in the queue",
);
pub const WAITER_ACTIVE: Metric = new(
    "distributed_lock.waiter.active",
    MetricKind::UpDown,
    "{waiter}",
    &[BACKEND, SYSTEM, PREFIX],
    "Owners waiting in a queue",
);
pub const RENEW_ATTEMPTS: Metric = new(
    "distributed_lock.renew.attempts",
    MetricKind::Counter,
    "{attempt}",
    &[BACKEND, SYSTEM, OUTCOME],
    "Attempts to renew a lease, by outcome",
);
pub const RELEASE_ATTEMPTS: Metric = new(
    "distributed_lock.release.attempts",
    MetricKind::Counter,
    "{attempt}",
    &[BACKEND, SYSTEM, OUTCOME],
    "Release attempts, by outcome",
);
pub const HOLD_DURATION: Metric = histogram(
    "distributed_lock.hold.duration",
    &[BACKEND, SYSTEM, PREFIX, END],
    HOLDS,
    "Hold time of locks, by how they ended",
);
pub const LEASE_ACTIVE: Metric = new(
    "distributed_lock.lease.active",
    MetricKind::UpDown,
    "{lease}",
    &[BACKEND, SYSTEM, PREFIX],
    "Locks held",
);
pub const LEASE_OLDEST_AGE: Metric = new(
    "distributed_lock.lease.oldest.age",
    MetricKind::Gauge,
    "s",
    &[BACKEND, SYSTEM],
    "Age of the longest current hold",
);
pub const LEASE_EXPIRATIONS: Metric = new(
    "distributed_lock.lease.expirations",
    MetricKind::Counter,
    "{lease}",
    &[BACKEND, SYSTEM, CAUSE],
    "Expired leases",
);
pub const LEASE_RECLAIMS: Metric = new(
    "distributed_lock.lease.reclaims",
    MetricKind::Counter,
    "{lease}",
    &[BACKEND, SYSTEM, CAUSE],
    "Grants over an expired lease",
);
pub const LEASE_LOSSES: Metric = new(
    "distributed_lock.lease.losses",
    MetricKind::Counter,
    "{lease}",
    &[BACKEND, SYSTEM, CAUSE],
    "Renewals of leases that had already ended",
);
pub const FORCE_UNLOCKS: Metric = new(
    "distributed_lock.force_unlocks",
    MetricKind::Counter,
    "{unlock}",
    &[BACKEND, SYSTEM, OUTCOME, PROTECTED],
    "Forced unlocks, by outcome",
);
pub const FENCING_REJECTIONS: Metric = new(
    "distributed_lock.fencing.rejections",
    MetricKind::Counter,
    "{rejection}",
    &[BACKEND, SYSTEM, CAUSE],
    "Writes rejected because of their fencing token",
);
pub const DUAL_OWNER_SUSPICIONS: Metric = new(
    "distributed_lock.dual_owner.suspicions",
    MetricKind::Counter,
    "{suspicion}",
    &[BACKEND, SYSTEM, DETECTOR],
    "Suspected cases of two owners of one lock",
);
pub const BACKEND_OPERATION_DURATION: Metric = histogram(
    "distributed_lock.backend.operation.duration",
    &[BACKEND, SYSTEM, OPERATION, ERROR_TYPE],
    OPERATIONS,
    "Duration of backend operations",
);
pub const BACKEND_SNAPSHOT_AGE: Metric = new(
    "distributed_lock.backend.snapshot.age",
    MetricKind::Gauge,
    "s",
    &[BACKEND, SYSTEM],
    "Age of the last observation of a backend",
);
pub const BACKEND_COVERAGE: Metric = new(
    "distributed_lock.backend.coverage",
    MetricKind::Gauge,
    "1",
    &[BACKEND, SYSTEM],
    "Share of a backend covered by the last observation; absent while unknown",
);
pub const CLOCK_OFFSET: Metric = new(
    "distributed_lock.clock.offset",
    MetricKind::Gauge,
    "s",
    &[BACKEND, SYSTEM],
    "The clock of a backend minus the console's",
);
pub const ALERT_ACTIVE: Metric = new(
    "distributed_lock.alert.active",
    MetricKind::Gauge,
    "{alert}",
    &[SEVERITY, RULE],
    "Firing alerts, reported by the evaluating server",
);
pub const ALERT_EVALUATION_AGE: Metric = new(
    "distributed_lock.alert.evaluation.age",
    MetricKind::Gauge,
    "s",
    &[],
    "Time since any server evaluated the alert rules, as this server knows it",
);
pub const TASK_PANICS: Metric = new(
    "leasehold.task.panics",
    MetricKind::Counter,
    "{panic}",
    &[],
    "Panics of background tasks",
);
pub const HTTP_DURATION: Metric = histogram(
    "http.server.request.duration",
    &[METHOD, ROUTE, STATUS, ERROR_TYPE],
    REQUESTS,
    "Duration of HTTP requests",
);
pub const DB_DURATION: Metric = histogram(
    "db.client.operation.duration",
    &[DB_SYSTEM, DB_OPERATION, ERROR_TYPE],
    OPERATIONS,
    "Duration of operations of the console's store, by calling part",
);

/// All metrics, in the order of the documentation.
pub const ALL: &[Metric] = &[
    ACQUIRE_ATTEMPTS,
    WAIT_DURATION,
    WAITER_ACTIVE,
    RENEW_ATTEMPTS,
    RELEASE_ATTEMPTS,
    HOLD_DURATION,
    LEASE_ACTIVE,
    LEASE_OLDEST_AGE,
    LEASE_EXPIRATIONS,
    LEASE_RECLAIMS,
    LEASE_LOSSES,
    FORCE_UNLOCKS,
    FENCING_REJECTIONS,
    DUAL_OWNER_SUSPICIONS,
    BACKEND_OPERATION_DURATION,
    BACKEND_SNAPSHOT_AGE,
    BACKEND_COVERAGE,
    CLOCK_OFFSET,
    ALERT_ACTIVE,
    ALERT_EVALUATION_AGE,
    TASK_PANICS,
    HTTP_DURATION,
    DB_DURATION,
];
