//! Every condition there is: its words, its thresholds with their bounds, and how the built-in rule on it behaves.

use super::rule::Severity;
use super::unit::Unit;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    NearExpiry,
    NotRenewing,
    LongHeld,
    HoldNearTtl,
    FencingRejections,
    Contention,
    WaiterAge,
    WaitP95,
    RenewalFailures,
    ReleaseFailures,
    LeaseLosses,
    TwoBelievers,
    NoTtl,
    ExpiredPresent,
    HolderGone,
    Leaked,
    BackendUnreachable,
    Coverage,
    ClockOffset,
    RelistDifference,
    ForcedUnlocks,
    BreakGlass,
}

/// What one alert of a kind is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum About {
    Lock,
    Prefix,
    Backend,
}

/// Where the past of a condition is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Past {
    Events,
    Rejections,
    Unlocks,
    /// Failed calls, which every server counts by the second.
    Counted,
    /// A clause that says why it is not.
    NotKept(&'static str),
}

/// One threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Param {
    pub name: &'static str,
    /// Before the value, where it is typed.
    pub words: &'static str,
    /// In a sentence, with `…` where the value stands; none: the words, then the value.
    pub said: Option<&'static str>,
    pub unit: Unit,
    /// None: it is left out unless it is given.
    pub default: Option<i64>,
    pub min: i64,
    pub max: i64,
    /// The one that a series is drawn against.
    pub is_main: bool,
}

/// What is said of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindInfo {
    pub wire: &'static str,
    pub title: &'static str,
    /// After "fires when".
    pub when: &'static str,
    pub about: About,
    pub severity: Severity,
    pub for_ms: i64,
    pub keep_ms: i64,
    pub past: Past,
    pub params: &'static [Param],
}

const S: i64 = 1_000;
const M: i64 = 60 * S;
const H: i64 = 60 * M;

const fn param(
    name: &'static str,
    words: &'static str,
    unit: Unit,
    default: Option<i64>,
    bounds: (i64, i64),
) -> Param {
    Param {
        name,
        words,
        said: None,
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

const fn said(said: &'static str, param: Param) -> Param {
    Param {
        said: Some(said),
        ..param
    }
}

const fn window(default: i64) -> Param {
    param(
        "window",
        "within",
        Unit::Duration,
        Some(default),
        (super::limits::WINDOW_MS_MIN, super::limits::WINDOW_MS_MAX),
    )
}

const fn number(default: i64) -> Param {
    main(param(
        "count",
        "at least",
        Unit::Count,
        Some(default),
        (1, 1_000_000),
    ))
}

const NEAR: &[Param] = &[main(said(
    "less than … of the TTL left, of holders that never renew",
    param(
        "share",
        "of holders that never renew: left below",
        Unit::Share,
        Some(125),
        (1, 900),
    ),
))];
const RENEWING: &[Param] = &[main(said(
    "silent for more than … its own interval",
    param(
        "intervals",
        "silent for more intervals than",
        Unit::Times,
        Some(250),
        (150, 2_000),
    ),
))];
const HELD: &[Param] = &[
    main(said(
        "longer than … its own p95",
        param(
            "times_p95",
            "longer than its own p95 times",
            Unit::Times,
            Some(300),
            (110, 10_000),
        ),
    )),
    param(
        "longer_than",
        "or longer than",
        Unit::Duration,
        Some(2 * H),
        (S, 365 * 24 * H),
    ),
    param("at_least", "but not below", Unit::Duration, Some(M), (0, 24 * H)),
];
const HOLD_TTL: &[Param] = &[
    main(said(
        "p99 of the hold times above … of the TTL",
        param(
            "share",
            "p99 of the hold times above this share of the TTL",
            Unit::Share,
            Some(800),
            (100, 1_000),
        ),
    )),
    said(
        "of at least … holds",
        param("at_least", "of holds", Unit::Count, Some(20), (5, 10_000)),
    ),
    window(24 * H),
];
const CONTENDED: &[Param] = &[
    main(said(
        "more than … of those who wanted it waited or were refused",
        param(
            "share",
            "share of those who wanted it that waited or were refused above",
            Unit::Share,
            Some(500),
            (10, 1_000),
        ),
    )),
    said(
        "of at least … attempts",
        param("at_least", "of attempts", Unit::Count, Some(5), (1, 100_000)),
    ),
    window(5 * M),
];
const OLDER: &[Param] = &[main(param(
    "longer_than",
    "waiting longer than",
    Unit::Duration,
    Some(M),
    (S, 24 * H),
))];
const WAITS: &[Param] = &[
    main(param(
        "longer_than",
        "p95 of the waits above",
        Unit::Duration,
        Some(30 * S),
        (100, 24 * H),
    )),
    said(
        "of at least … waits",
        param("at_least", "of waits", Unit::Count, Some(5), (1, 100_000)),
    ),
    window(15 * M),
];
const LOSSES: &[Param] = &[number(3), window(5 * M)];
const ANY: &[Param] = &[number(1), window(5 * M)];
const COVERAGE: &[Param] = &[main(said(
    "less than … is seen",
    param("below", "seen share below", Unit::Share, Some(1_000), (10, 1_000)),
))];
const OFFSET: &[Param] = &[main(param(
    "above",
    "away from our clock by more than",
    Unit::Duration,
    Some(5 * S),
    (100, 24 * H),
))];

const NOW_ONLY: Past =
    Past::NotKept("history keeps what happened to locks, not what was wrong with them between");
const BACKENDS: Past = Past::NotKept("history keeps what happened to locks, not how backends answered");

impl Kind {
    pub const ALL: [Self; 22] = [
        Self::NearExpiry,
        Self::NotRenewing,
        Self::LongHeld,
        Self::HoldNearTtl,
        Self::FencingRejections,
        Self::Contention,
        Self::WaiterAge,
        Self::WaitP95,
        Self::RenewalFailures,
        Self::ReleaseFailures,
        Self::LeaseLosses,
        Self::TwoBelievers,
        Self::NoTtl,
        Self::ExpiredPresent,
        Self::HolderGone,
        Self::Leaked,
        Self::BackendUnreachable,
        Self::Coverage,
        Self::ClockOffset,
        Self::RelistDifference,
        Self::ForcedUnlocks,
        Self::BreakGlass,
    ];

    pub fn parse(wire: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.wire() == wire)
    }

    pub fn wire(self) -> &'static str {
        self.info().wire
    }

    pub fn about(self) -> About {
        self.info().about
    }

    /// The line of the table.
    pub fn info(self) -> KindInfo {
        match self {
            Self::NearExpiry
            | Self::NotRenewing
            | Self::LongHeld
            | Self::WaiterAge
            | Self::TwoBelievers
            | Self::NoTtl
            | Self::ExpiredPresent
            | Self::HolderGone
            | Self::Leaked => self.of_locks(),
            Self::HoldNearTtl | Self::Contention | Self::WaitP95 | Self::LeaseLosses => self.of_prefixes(),
            Self::FencingRejections | Self::ForcedUnlocks | Self::BreakGlass => self.of_records(),
            Self::RenewalFailures
            | Self::ReleaseFailures
            | Self::BackendUnreachable
            | Self::Coverage
            | Self::ClockOffset
            | Self::RelistDifference => self.of_backends(),
        }
    }

    #[rustfmt::skip]
    fn of_locks(self) -> KindInfo {
        use Severity::{Critical, Info, Warning};
        let row = |wire, title, when, severity, for_ms, past, params| KindInfo {
            wire, title, when, about: About::Lock, severity, for_ms, keep_ms: 0, past, params,
        };
        match self {
            Self::NearExpiry => row("near_expiry", "Near expiry", "a renewal is missed by the holder's own cadence, or little is left of a lease that never renews", Warning, 0, Past::Events, NEAR),
            Self::NotRenewing => row("not_renewing", "Not renewing", "a holder whose cadence is known has fallen silent", Critical, 0, Past::Events, RENEWING),
            Self::LongHeld => row("long_held", "Long-held", "a lock is held much longer than it usually is, or too long altogether", Warning, 0, Past::Events, HELD),
            Self::WaiterAge => row("waiter_age", "Waiter too old", "the first in line has waited for long", Warning, 0, NOW_ONLY, OLDER),
            Self::TwoBelievers => row("two_believers", "Two believers", "two owners act as if they held the same lock", Critical, 0, NOW_ONLY, &[]),
            Self::NoTtl => row("no_ttl", "No TTL", "a lock has no expiry, so that a crash keeps it for ever", Info, 5 * M, NOW_ONLY, &[]),
            Self::ExpiredPresent => row("expired_present", "Expired but present", "a lease has run out and its record is still there", Warning, 30 * S, NOW_ONLY, &[]),
            Self::HolderGone => row("holder_gone", "Holder gone", "a lock has outlived whoever took it", Critical, 0, NOW_ONLY, &[]),
            _ => row("leaked", "Leaked through a pooler", "a session lock may belong to a client that has gone back to the pool", Warning, M, NOW_ONLY, &[]),
        }
    }

    #[rustfmt::skip]
    fn of_prefixes(self) -> KindInfo {
        let row = |wire, title, when, for_ms, keep_ms, params| KindInfo {
            wire, title, when, about: About::Prefix, severity: Severity::Warning, for_ms, keep_ms, past: Past::Events, params,
        };
        match self {
            Self::HoldNearTtl => row("hold_near_ttl", "Holds close to the TTL", "work takes nearly as long as its lease: a lease about to start lying", 0, 5 * M, HOLD_TTL),
            Self::Contention => row("contention", "Contention", "many who want locks of a prefix wait or are refused", 30 * S, M, CONTENDED),
            Self::WaitP95 => row("wait_p95", "Waits too long", "those who wait for locks of a prefix wait for long", 0, M, WAITS),
            _ => row("lease_losses", "Lease losses", "leases of a prefix run out while they are held", 0, 0, LOSSES),
        }
    }

    #[rustfmt::skip]
    fn of_records(self) -> KindInfo {
        let row = |wire, title, when, severity, past, params| KindInfo {
            wire, title, when, about: About::Lock, severity, for_ms: 0, keep_ms: 0, past, params,
        };
        match self {
            Self::FencingRejections => row("fencing_rejections", "Fencing rejections", "writes are refused because of their token: somebody who lost the lock still writes", Severity::Critical, Past::Rejections, ANY),
            Self::ForcedUnlocks => row("forced_unlocks", "Forced unlock", "somebody releases a lock by force", Severity::Info, Past::Unlocks, ANY),
            _ => row("break_glass", "Break-glass unlock", "somebody releases a protected lock alone", Severity::Critical, Past::Unlocks, ANY),
        }
    }

    #[rustfmt::skip]
    fn of_backends(self) -> KindInfo {
        let row = |wire, title, when, severity, for_ms, past, params| KindInfo {
            wire, title, when, about: About::Backend, severity, for_ms, keep_ms: 0, past, params,
        };
        match self {
            Self::RenewalFailures => row("renewal_failures", "Renewal failures", "renewals are refused or fail", Severity::Warning, 0, Past::Counted, LOSSES),
            Self::ReleaseFailures => row("release_failures", "Release failures", "releases are refused or fail", Severity::Warning, 0, Past::Counted, LOSSES),
            Self::BackendUnreachable => row("backend_unreachable", "Backend stale or unreachable", "a backend does not answer", Severity::Critical, 0, BACKENDS, &[]),
            Self::Coverage => row("coverage", "Coverage too low", "only a part of a backend's locks is seen", Severity::Warning, M, BACKENDS, COVERAGE),
            Self::ClockOffset => row("clock_offset", "Clock offset", "a backend's clock is far from ours", Severity::Warning, M, BACKENDS, OFFSET),
            _ => row("relist_difference", "Re-list difference", "a full listing finds locks that the watch had not told of", Severity::Warning, 0, BACKENDS, &[]),
        }
    }

    /// The threshold of this name.
    pub fn param(self, name: &str) -> Option<&'static Param> {
        self.info().params.iter().find(|param| param.name == name)
    }

    pub fn main_param(self) -> Option<&'static Param> {
        self.info().params.iter().find(|param| param.is_main)
    }
}
