//! Conditions on one lock, judged from the same facts and by the same rules that name its state on the pages.

use super::kind::Kind;
use super::long_held::HeldLock;
use super::machine::Sign;
use super::rule::Condition;
use crate::diagnosis::{self, Facts, LifetimeFacts};
use crate::human;
use crate::names::{BackendName, LockId, Resource, Source};
use crate::observation;
use crate::safety::SafetyClass;
use crate::state::LockState;

/// One lock as somebody sees it now, or as it was at a moment of the past.
#[derive(Debug, Clone, Copy)]
pub struct LockSight<'a> {
    pub backend: &'a BackendName,
    pub source: &'a Source,
    pub name: &'a [u8],
    pub owner: Option<&'a str>,
    pub safety: Option<SafetyClass>,
    pub facts: Facts<'a>,
    pub token: Option<u64>,
    /// Milliseconds since 1970, where it is told.
    pub acquired_at: Option<i64>,
    /// Where that is not told: at least so long.
    pub held_ms: i64,
    /// The next look at it may come so much later.
    pub lag_ms: i64,
}

impl LockSight<'_> {
    pub fn id(&self) -> LockId {
        LockId {
            backend: self.backend.clone(),
            source: self.source.clone(),
            resource: Resource::from_bytes(self.name),
        }
    }

    pub const fn lock(&self) -> HeldLock<'_> {
        HeldLock {
            backend: self.backend,
            name: self.name,
            owner: self.owner,
            safety: self.safety,
        }
    }

    /// Tells this very acquisition from the next one of the same lock. Empty: nobody can tell them apart.
    pub fn holding(&self) -> String {
        holding(self.token, self.acquired_at, self.owner)
    }
}

/// As [`LockSight::holding`].
pub fn holding(token: Option<u64>, acquired_at: Option<i64>, owner: Option<&str>) -> String {
    match (token, acquired_at) {
        (Some(token), _) => format!("t{token}"),
        (None, Some(at)) => format!("a{at}"),
        (None, None) => owner.map(|owner| format!("o{owner}")).unwrap_or_default(),
    }
}

/// What a condition says of a lock, with what it measured. `p95_ms` is asked for only where it matters: how long this lock
/// is usually held.
pub fn judge_lock(
    condition: &Condition,
    sight: &LockSight<'_>,
    p95_ms: &dyn Fn(&LockSight<'_>) -> Option<i64>,
) -> (Sign, i64) {
    let facts = &sight.facts;
    let holds = |state| sign(diagnosis::judge(facts).holds(state));
    match condition.kind {
        Kind::NearExpiry => near_expiry(condition, facts),
        Kind::NotRenewing => not_renewing(condition, sight),
        Kind::LongHeld => long_held(condition, sight, p95_ms),
        Kind::WaiterAge => {
            let waited = facts.oldest_waiter_ms.unwrap_or(0);
            let limit = condition.value("longer_than").unwrap_or(i64::MAX);
            (sign(waited > limit), waited)
        }
        Kind::TwoBelievers => (holds(LockState::TwoBelievers), 0),
        Kind::NoTtl => (holds(LockState::NoTtl), 0),
        Kind::ExpiredPresent => (holds(LockState::ExpiredPresent), 0),
        Kind::HolderGone => (holds(LockState::HolderGone), 0),
        Kind::Leaked => (sign(is_leaked(facts)), 0),
        // Not about a lock as it is now.
        Kind::HoldNearTtl
        | Kind::FencingRejections
        | Kind::Contention
        | Kind::WaitP95
        | Kind::RenewalFailures
        | Kind::ReleaseFailures
        | Kind::LeaseLosses
        | Kind::BackendUnreachable
        | Kind::Coverage
        | Kind::ClockOffset
        | Kind::RelistDifference
        | Kind::ForcedUnlocks
        | Kind::BreakGlass => (Sign::Clear, 0),
    }
}

const fn sign(holds: bool) -> Sign {
    if holds { Sign::Holds } else { Sign::Clear }
}

/// Stays while the holder is silent, also once it counts as not renewing: an alert that resolves when things get worse
/// would be a lie.
fn near_expiry(condition: &Condition, facts: &Facts<'_>) -> (Sign, i64) {
    let LifetimeFacts::Leased {
        remaining_ms,
        track_ms,
    } = facts.lifetime
    else {
        return (without_lease(facts), 0);
    };
    let left = share(remaining_ms, track_ms);
    if remaining_ms <= 0 {
        // What happens then is another condition; until somebody clears it away, this one is not over either.
        return (Sign::Unknown, left);
    }
    let is_near = match facts.cadence {
        Some(cadence) => {
            diagnosis::is_below_low(facts, remaining_ms)
                || cadence.silent_ms > diagnosis::near_after_ms(cadence.longest_ms, facts.sampling_ms)
        }
        None if facts.near_below_ms.is_some() => diagnosis::is_below_low(facts, remaining_ms),
        None => left < condition.value("share").unwrap_or(1_000 / diagnosis::NEAR_SHARE),
    };
    (sign(is_near), left)
}

/// A lease of unknown end may still be running: an alert about it stays as it is.
const fn without_lease(facts: &Facts<'_>) -> Sign {
    match facts.lifetime {
        LifetimeFacts::RanOut { .. } | LifetimeFacts::Unknown { .. } => Sign::Unknown,
        LifetimeFacts::Leased { .. }
        | LifetimeFacts::Heartbeat { .. }
        | LifetimeFacts::NoTtl { .. }
        | LifetimeFacts::Session => Sign::Clear,
    }
}

fn not_renewing(condition: &Condition, sight: &LockSight<'_>) -> (Sign, i64) {
    let facts = &sight.facts;
    let intervals = condition
        .value("intervals")
        .unwrap_or(diagnosis::SILENT_INTERVALS);
    if let LifetimeFacts::Heartbeat {
        silent_ms,
        stale_after_ms,
    } = facts.lifetime
    {
        // On the scale of the threshold, so that both are drawn as one.
        let measure = silent_ms * intervals / stale_after_ms.max(1);
        return (sign(silent_ms > stale_after_ms), measure);
    }
    let LifetimeFacts::Leased {
        remaining_ms,
        track_ms,
    } = facts.lifetime
    else {
        return (without_lease(facts), 0);
    };
    let Some(cadence) = facts.cadence else {
        // Not learnt yet, or learnt by a process that is gone.
        return (Sign::Unknown, 0);
    };
    let after = diagnosis::silent_after(
        cadence.longest_ms,
        facts.sampling_ms,
        track_ms,
        intervals,
        sight.lag_ms,
    );
    let measure = cadence.silent_ms * 100 / cadence.interval_ms.max(1);
    match remaining_ms > 0 {
        true => (sign(cadence.silent_ms > after), measure),
        false => (Sign::Unknown, measure),
    }
}

fn long_held(
    condition: &Condition,
    sight: &LockSight<'_>,
    p95_ms: &dyn Fn(&LockSight<'_>) -> Option<i64>,
) -> (Sign, i64) {
    let held = sight.held_ms;
    let is_above = condition.value("longer_than").is_some_and(|limit| held > limit);
    let Some(times) = condition.value("times_p95") else {
        return (told(sight, is_above), held);
    };
    if held <= condition.value("at_least").unwrap_or(0) {
        return (told(sight, is_above), 0);
    }
    let p95 = p95_ms(sight);
    let measure = p95.map_or(0, |p95| held * 100 / p95.max(1));
    (told(sight, is_above || measure > times), measure)
}

/// Where the backend does not tell when it was acquired, we count from when we first saw it: less than the truth.
fn told(sight: &LockSight<'_>, is_above: bool) -> Sign {
    match (is_above, sight.acquired_at) {
        (true, _) => Sign::Holds,
        (false, Some(_)) => Sign::Clear,
        (false, None) => Sign::Unknown,
    }
}

fn is_leaked(facts: &Facts<'_>) -> bool {
    matches!(facts.condition, Some(observation::Condition::Note { why }) if why.contains("pooler"))
}

/// Thousandths.
pub(super) const fn share(part: i64, whole: i64) -> i64 {
    if whole <= 0 { 0 } else { part * 1_000 / whole }
}

/// The sentence of an alert on a lock for which the condition holds.
pub fn tell_lock(condition: &Condition, sight: &LockSight<'_>, measure: i64, p95_ms: Option<i64>) -> String {
    let facts = &sight.facts;
    match condition.kind {
        Kind::LongHeld => {
            let held = human::period(sight.held_ms / 1_000 * 1_000);
            let whole = if sight.acquired_at.is_some() {
                ""
            } else {
                "at least "
            };
            match p95_ms.filter(|_| measure > 0 && condition.value("times_p95").is_some()) {
                Some(p95) => format!(
                    "Held for {whole}{held}, {} times its p95 of {}.",
                    human::measure(times(measure)),
                    human::duration(p95)
                ),
                None => format!("Held for {whole}{held}."),
            }
        }
        Kind::WaiterAge => format!("The first in line has waited for {}.", human::duration(measure)),
        Kind::Leaked => match facts.condition {
            Some(observation::Condition::Note { why }) => format!("It {why}."),
            _ => String::new(),
        },
        kind => state_of(kind)
            .and_then(|states| {
                let reasons = diagnosis::explain(facts, diagnosis::judge(facts));
                reasons.into_iter().find(|reason| states.contains(&reason.state))
            })
            .map_or_else(|| silence(facts), |reason| reason.why),
    }
}

/// A silence that the diagnosis does not name yet: this condition is stricter.
fn silence(facts: &Facts<'_>) -> String {
    let LifetimeFacts::Leased { remaining_ms, .. } = facts.lifetime else {
        return String::new();
    };
    let left = human::duration(remaining_ms);
    match facts.cadence {
        Some(cadence) => format!(
            "Renewed every {}, silent for {}. Expires in {left}.",
            human::duration(cadence.interval_ms),
            human::duration(cadence.silent_ms)
        ),
        None => format!("Never seen to renew; {left} left."),
    }
}

const fn state_of(kind: Kind) -> Option<&'static [LockState]> {
    match kind {
        Kind::NearExpiry => Some(&[LockState::NotRenewing, LockState::NearExpiry]),
        Kind::NotRenewing => Some(&[LockState::NotRenewing]),
        Kind::TwoBelievers => Some(&[LockState::TwoBelievers]),
        Kind::NoTtl => Some(&[LockState::NoTtl]),
        Kind::ExpiredPresent => Some(&[LockState::ExpiredPresent]),
        Kind::HolderGone => Some(&[LockState::HolderGone]),
        _ => None,
    }
}

fn times(hundredths: i64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "it is shown with one decimal")]
    let times = (hundredths / 10) as f64 / 10.0;
    times
}
