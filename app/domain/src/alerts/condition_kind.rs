//! All conditions: wording, thresholds with bounds, and defaults of the built-in rules.

use super::rule::AlertSeverity;
use super::unit::Unit;

crate::wire_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum ConditionKind {
        NearExpiry = "near_expiry",
        NotRenewing = "not_renewing",
        LongHeld = "long_held",
        HoldNearTtl = "hold_near_ttl",
        FencingRejections = "fencing_rejections",
        Contention = "contention",
        WaiterAge = "waiter_age",
        WaitP95 = "wait_p95",
        RenewalFailures = "renewal_failures",
        ReleaseFailures = "release_failures",
        LeaseLosses = "lease_losses",
        DualOwner = "dual_owner",
        Deadlock = "deadlock",
        Split = "split",
        QuorumLost = "quorum_lost",
        NoTtl = "no_ttl",
        Expired = "expired",
        Orphaned = "orphaned",
        Leaked = "leaked",
        BackendUnreachable = "backend_unreachable",
        Coverage = "coverage",
        ClockOffset = "clock_offset",
        RelistDifference = "relist_difference",
        ForcedUnlocks = "forced_unlocks",
        BreakGlass = "break_glass",
    }
}

/// Subject of an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SubjectKind {
    Lock,
    Prefix,
    Backend,
}

/// Where a preview reads the past of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistorySource {
    Events,
    Rejections,
    Unlocks,
    /// Failed calls, counted per second by each server.
    Counted,
    /// No history; the clause says why.
    NotKept(&'static str),
}

/// One threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Param {
    pub name: &'static str,
    /// Label of the field in the form: a sentence with its unit, and `…` in place of the value.
    pub label: &'static str,
    /// The same inside a sentence. The value that replaces `…` has its unit.
    pub clause: &'static str,
    pub unit: Unit,
    /// `None`: the threshold is optional.
    pub default: Option<i64>,
    pub min: i64,
    pub max: i64,
    /// The threshold that the chart shows.
    pub is_main: bool,
}

/// Texts and defaults of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindInfo {
    pub title: &'static str,
    /// Completes "fires when".
    pub when: &'static str,
    pub about: SubjectKind,
    pub severity: AlertSeverity,
    pub for_ms: i64,
    pub keep_ms: i64,
    pub past: HistorySource,
    pub params: &'static [Param],
}

const S: i64 = 1_000;
const M: i64 = 60 * S;
const H: i64 = 60 * M;

const fn param(
    name: &'static str,
    label: &'static str,
    clause: &'static str,
    unit: Unit,
    default: Option<i64>,
    bounds: (i64, i64),
) -> Param {
    Param {
        name,
        label,
        clause,
        unit,
        default,
        min: bounds.0,
        max: bounds.1,
        is_main: false,
    }
}

const fn main(param: Param) -> Param {
    Param {
        is_main: true,
        ..param
    }
}

const fn window(default: i64) -> Param {
    param(
        "window",
        "Within the last … (a time, such as 5m)",
        "within …",
        Unit::Duration,
        Some(default),
        (super::limits::WINDOW_MS_MIN, super::limits::WINDOW_MS_MAX),
    )
}

const fn number(label: &'static str, clause: &'static str, default: i64) -> Param {
    main(param(
        "count",
        label,
        clause,
        Unit::Count,
        Some(default),
        (1, 1_000_000),
    ))
}

const NEAR: &[Param] = &[main(param(
    "share",
    "Less than … % of the TTL is left, for a holder that never renews",
    "less than … of the TTL is left, for a holder that never renews",
    Unit::Share,
    Some(125),
    (1, 900),
))];
const RENEWING: &[Param] = &[main(param(
    "intervals",
    "No renewal for more than … × the holder's own longest renewal interval",
    "no renewal for more than … the holder's own longest renewal interval",
    Unit::Times,
    Some(250),
    (150, 2_000),
))];
const HELD: &[Param] = &[
    main(param(
        "times_p95",
        "Held longer than … × the lock's own p95 hold time",
        "held longer than … the lock's own p95 hold time",
        Unit::Times,
        Some(300),
        (110, 10_000),
    )),
    param(
        "longer_than",
        "Or held longer than … (a time, such as 2h)",
        "or held longer than …",
        Unit::Duration,
        Some(2 * H),
        (S, 365 * 24 * H),
    ),
    param(
        "at_least",
        "By its p95 only if held longer than … (a time, such as 1m)",
        "by its p95 only if held longer than …",
        Unit::Duration,
        Some(M),
        (0, 24 * H),
    ),
];
const HOLD_TTL: &[Param] = &[
    main(param(
        "share",
        "The p99 hold time is above … % of the TTL",
        "the p99 hold time is above … of the TTL",
        Unit::Share,
        Some(800),
        (100, 1_000),
    )),
    param(
        "at_least",
        "Of at least … holds",
        "of at least … holds",
        Unit::Count,
        Some(20),
        (5, 10_000),
    ),
    window(24 * H),
];
const CONTENDED: &[Param] = &[
    main(param(
        "share",
        "More than … % of the attempts to acquire waited or were refused",
        "more than … of attempts waited or were refused",
        Unit::Share,
        Some(500),
        (10, 1_000),
    )),
    param(
        "at_least",
        "Of at least … attempts",
        "of at least … attempts",
        Unit::Count,
        Some(5),
        (1, 100_000),
    ),
    window(5 * M),
];
const OLDER: &[Param] = &[main(param(
    "longer_than",
    "The first waiter waits longer than … (a time, such as 1m)",
    "the first waiter waits longer than …",
    Unit::Duration,
    Some(M),
    (S, 24 * H),
))];
const WAITS: &[Param] = &[
    main(param(
        "longer_than",
        "The p95 wait is longer than … (a time, such as 3m)",
        "the p95 wait is longer than …",
        Unit::Duration,
        Some(3 * M),
        (100, 24 * H),
    )),
    param(
        "at_least",
        "Of at least … waits",
        "of at least … waits",
        Unit::Count,
        Some(5),
        (1, 100_000),
    ),
    window(15 * M),
];
const RENEWALS: &[Param] = &[
    number("At least … failed renewals", "failed renewals: at least …", 3),
    window(5 * M),
];
const RELEASES: &[Param] = &[
    number("At least … failed releases", "failed releases: at least …", 3),
    window(5 * M),
];
/// Losses of one prefix; each loss has had an alert of `not_renewing` before.
const LOSSES: &[Param] = &[
    number("At least … lost leases", "lost leases: at least …", 20),
    window(5 * M),
];
const REJECTIONS: &[Param] = &[
    number("At least … rejected writes", "rejected writes: at least …", 1),
    window(5 * M),
];
const UNLOCKS: &[Param] = &[
    number("At least … forced unlocks", "forced unlocks: at least …", 1),
    window(5 * M),
];
const BREAK_GLASS: &[Param] = &[
    number(
        "At least … break-glass unlocks",
        "break-glass unlocks: at least …",
        1,
    ),
    window(5 * M),
];
const COVERAGE: &[Param] = &[main(param(
    "below",
    "Coverage is below … % of the backend's locks",
    "coverage is below …",
    Unit::Share,
    Some(1_000),
    (10, 1_000),
))];
const OFFSET: &[Param] = &[main(param(
    "above",
    "The backend's clock differs from the console's by more than … (a time, such as 5s)",
    "clock offset is above …",
    Unit::Duration,
    Some(5 * S),
    (100, 24 * H),
))];

const NOW_ONLY: HistorySource = HistorySource::NotKept("history has lock events, not lock states");
const WAITS_NOT_KEPT: HistorySource =
    HistorySource::NotKept("history has waits by their end, not who waited for whom");
const BACKENDS: HistorySource = HistorySource::NotKept("history has lock events, not backend health");

impl ConditionKind {
    pub fn about(self) -> SubjectKind {
        self.info().about
    }

    pub fn info(self) -> KindInfo {
        match self {
            Self::NearExpiry
            | Self::NotRenewing
            | Self::LongHeld
            | Self::WaiterAge
            | Self::DualOwner
            | Self::Deadlock
            | Self::Split
            | Self::QuorumLost
            | Self::NoTtl
            | Self::Expired
            | Self::Orphaned
            | Self::Leaked => self.lock_info(),
            Self::HoldNearTtl | Self::Contention | Self::WaitP95 | Self::LeaseLosses => self.prefix_info(),
            Self::FencingRejections | Self::ForcedUnlocks | Self::BreakGlass => self.record_info(),
            Self::RenewalFailures
            | Self::ReleaseFailures
            | Self::BackendUnreachable
            | Self::Coverage
            | Self::ClockOffset
            | Self::RelistDifference => self.backend_info(),
        }
    }

    #[rustfmt::skip]
    fn lock_info(self) -> KindInfo {
        use AlertSeverity::{Critical, Info, Warning};
        let row = |title, when, severity, for_ms, past, params| KindInfo {
            title, when, about: SubjectKind::Lock, severity, for_ms, keep_ms: 0, past, params,
        };
        match self {
            Self::NearExpiry => row("Near expiry", "a holder missed a renewal, or a lease that never renews is about to expire", Warning, 30 * S, HistorySource::Events, NEAR),
            Self::NotRenewing => row("Not renewing", "a holder with a known renewal interval has stopped renewing", Critical, 0, HistorySource::Events, RENEWING),
            Self::LongHeld => row("Long-held", "a lock is held much longer than it usually is, or too long altogether", Warning, 0, HistorySource::Events, HELD),
            Self::WaiterAge => row("Waiter too old", "the first waiter waits too long", Warning, 0, NOW_ONLY, OLDER),
            Self::DualOwner => row("Two owners", "two owners act as if they held the same lock", Critical, 0, NOW_ONLY, &[]),
            Self::Deadlock => row("Deadlock", "owners wait for each other in a cycle, inside of a backend or across backends", Critical, 5 * S, WAITS_NOT_KEPT, &[]),
            Self::Split => row("Split", "nodes of a Redlock have different values, and none has a quorum", Critical, 0, NOW_ONLY, &[]),
            Self::QuorumLost => row("Quorum lost", "a Redlock was on a quorum of its nodes and is on a minority now", Critical, 0, NOW_ONLY, &[]),
            Self::NoTtl => row("No TTL", "a lock has no expiry and stays held after a crash", Info, H, NOW_ONLY, &[]),
            Self::Expired => row("Expired", "a lease has run out and its record is still there", Warning, 30 * M, NOW_ONLY, &[]),
            Self::Orphaned => row("Orphaned", "a lock outlives its owner", Critical, 0, NOW_ONLY, &[]),
            _ => row("Leaked through a pooler", "a session lock may belong to a client that has gone back to the pool", Warning, M, NOW_ONLY, &[]),
        }
    }

    #[rustfmt::skip]
    fn prefix_info(self) -> KindInfo {
        let row = |title, when, for_ms, keep_ms, params| KindInfo {
            title, when, about: SubjectKind::Prefix, severity: AlertSeverity::Warning, for_ms, keep_ms, past: HistorySource::Events, params,
        };
        match self {
            Self::HoldNearTtl => row("Holds close to the TTL", "work takes nearly as long as the lease TTL", 30 * M, 5 * M, HOLD_TTL),
            Self::Contention => row("Contention", "many attempts on locks of a prefix wait or are refused", 30 * S, M, CONTENDED),
            Self::WaitP95 => row("Waits too long", "waits for locks of a prefix are long", 0, M, WAITS),
            _ => row("Lease losses", "leases of a prefix run out while they are held", 0, 0, LOSSES),
        }
    }

    #[rustfmt::skip]
    fn record_info(self) -> KindInfo {
        let row = |title, when, severity, past, params| KindInfo {
            title, when, about: SubjectKind::Lock, severity, for_ms: 0, keep_ms: 0, past, params,
        };
        match self {
            Self::FencingRejections => row("Fencing rejections", "writes with a stale token are rejected: a former owner still writes", AlertSeverity::Critical, HistorySource::Rejections, REJECTIONS),
            Self::ForcedUnlocks => row("Forced unlock", "a lock is force-released", AlertSeverity::Info, HistorySource::Unlocks, UNLOCKS),
            _ => row("Break-glass unlock", "a protected lock is force-released without a second approver", AlertSeverity::Critical, HistorySource::Unlocks, BREAK_GLASS),
        }
    }

    #[rustfmt::skip]
    fn backend_info(self) -> KindInfo {
        let row = |title, when, severity, for_ms, past, params| KindInfo {
            title, when, about: SubjectKind::Backend, severity, for_ms, keep_ms: 0, past, params,
        };
        match self {
            Self::RenewalFailures => row("Renewal failures", "renewals come after their lease has ended", AlertSeverity::Warning, 0, HistorySource::Counted, RENEWALS),
            Self::ReleaseFailures => row("Release failures", "releases are refused or fail", AlertSeverity::Warning, 0, HistorySource::Counted, RELEASES),
            Self::BackendUnreachable => row("Backend stale or unreachable", "a backend does not answer", AlertSeverity::Critical, 0, BACKENDS, &[]),
            Self::Coverage => row("Coverage too low", "coverage of a backend is partial", AlertSeverity::Warning, M, BACKENDS, COVERAGE),
            Self::ClockOffset => row("Clock offset", "a backend's clock differs from the console's", AlertSeverity::Warning, M, BACKENDS, OFFSET),
            _ => row("Resync difference", "a resync finds changes that the watch missed", AlertSeverity::Warning, 0, BACKENDS, &[]),
        }
    }

    pub fn param(self, name: &str) -> Option<&'static Param> {
        self.info().params.iter().find(|param| param.name == name)
    }

    pub fn main_param(self) -> Option<&'static Param> {
        self.info().params.iter().find(|param| param.is_main)
    }
}
