//! Conditions on one lock, computed from the same facts and functions as its state on the
//! pages.

use super::condition_kind::ConditionKind;
use super::long_held::HeldLock;
use super::rule::Condition;
use super::state_machine::ConditionResult;
use super::usual_hold_time::UsualHold;
use crate::diagnosis::{self, Facts, LifetimeFacts};
use crate::format;
use crate::names::{BackendName, LockId, Resource, Source};
use crate::observation;
use crate::safety::SafetyClass;
use crate::state::LockState;

/// One lock at one moment, now or in the past.
#[derive(Debug, Clone, Copy)]
pub struct LockSnapshot<'a> {
    pub backend: &'a BackendName,
    pub source: &'a Source,
    pub name: &'a [u8],
    pub owner: Option<&'a str>,
    pub safety: Option<SafetyClass>,
    pub facts: Facts<'a>,
    pub token: Option<u64>,
    /// Milliseconds since 1970, if the backend reports it.
    pub acquired_at: Option<i64>,
    /// Lower bound of the hold time otherwise.
    pub held_ms: i64,
    /// Longest delay until the next observation.
    pub lag_ms: i64,
}

impl LockSnapshot<'_> {
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

    /// Identifies this acquisition among those of the same lock. Empty: acquisitions cannot be
    /// distinguished.
    pub fn holding(&self) -> String {
        holding(self.token, self.acquired_at, self.owner)
    }
}

/// In thousandths of the TTL: a hold of this length ended by its expiry, to the resolution of scans.
const RUNS_OUT_SHARE: i64 = 950;

/// See [`LockSnapshot::holding`].
pub fn holding(token: Option<u64>, acquired_at: Option<i64>, owner: Option<&str>) -> String {
    match (token, acquired_at) {
        (Some(token), _) => format!("t{token}"),
        (None, Some(at)) => format!("a{at}"),
        (None, None) => owner.map(|owner| format!("o{owner}")).unwrap_or_default(),
    }
}

/// Whether a reading may be of this holding: it identifies this one, or none.
pub fn may_be_same_holding(reading: &str, holding: &str) -> bool {
    reading.is_empty() || reading == holding
}

/// Result of a condition for a lock, with the measured value. `usual` (usual hold time of this
/// lock) is called only if needed.
pub fn evaluate_lock(
    condition: &Condition,
    snapshot: &LockSnapshot<'_>,
    usual: &dyn Fn(&LockSnapshot<'_>) -> Option<UsualHold>,
) -> (ConditionResult, i64) {
    let facts = &snapshot.facts;
    let holds = |state| holds_or_clear(diagnosis::diagnose(facts).holds(state));
    match condition.kind {
        ConditionKind::NearExpiry => near_expiry(condition, snapshot, usual),
        ConditionKind::NotRenewing => not_renewing(condition, snapshot),
        ConditionKind::LongHeld => long_held(condition, snapshot, usual),
        ConditionKind::WaiterAge => {
            let waited = facts.oldest_waiter_ms.unwrap_or(0);
            let limit = condition.value("longer_than").unwrap_or(i64::MAX);
            (holds_or_clear(waited > limit), waited)
        }
        ConditionKind::DualOwner => (holds(LockState::DualOwner), 0),
        ConditionKind::Split => (holds(LockState::Split), 0),
        ConditionKind::QuorumLost => (holds(LockState::QuorumLost), 0),
        ConditionKind::NoTtl => (holds(LockState::NoTtl), 0),
        ConditionKind::Expired => (holds(LockState::Expired), 0),
        ConditionKind::Orphaned => (holds(LockState::Orphaned), 0),
        ConditionKind::Leaked => (holds_or_clear(is_leaked(facts)), 0),
        // Not a condition on the current state of one lock.
        ConditionKind::Deadlock
        | ConditionKind::HoldNearTtl
        | ConditionKind::FencingRejections
        | ConditionKind::Contention
        | ConditionKind::WaitP95
        | ConditionKind::RenewalFailures
        | ConditionKind::ReleaseFailures
        | ConditionKind::LeaseLosses
        | ConditionKind::BackendUnreachable
        | ConditionKind::Coverage
        | ConditionKind::ClockOffset
        | ConditionKind::RelistDifference
        | ConditionKind::ForcedUnlocks
        | ConditionKind::BreakGlass => (ConditionResult::Clear, 0),
    }
}

const fn holds_or_clear(holds: bool) -> ConditionResult {
    if holds {
        ConditionResult::Holds
    } else {
        ConditionResult::Clear
    }
}

/// Continues while the holder is silent, also once it counts as not renewing: the alert must
/// not resolve because things got worse.
fn near_expiry(
    condition: &Condition,
    snapshot: &LockSnapshot<'_>,
    usual: &dyn Fn(&LockSnapshot<'_>) -> Option<UsualHold>,
) -> (ConditionResult, i64) {
    let facts = &snapshot.facts;
    let LifetimeFacts::Leased {
        remaining_ms,
        track_ms,
    } = facts.lifetime
    else {
        return (without_lease(facts), 0);
    };
    let left = share(remaining_ms, track_ms);
    if remaining_ms <= 0 {
        // Expiry is another condition; this alert does not resolve until the record is removed.
        return (ConditionResult::Unknown, left);
    }
    let is_near = match facts.cadence {
        Some(cadence) => {
            diagnosis::is_below_low(facts, remaining_ms)
                || cadence.silent_ms > diagnosis::near_after_ms(cadence.longest_ms, facts.sampling_ms)
        }
        None if facts.near_below_ms.is_some() => diagnosis::is_below_low(facts, remaining_ms),
        None => {
            let is_below = left < condition.value("share").unwrap_or(1_000 / diagnosis::NEAR_SHARE);
            is_below && !is_usual(snapshot, track_ms, usual)
        }
    };
    (holds_or_clear(is_near), left)
}

/// Of a lease that never renews: its work usually ends before its expiry, and has not taken longer
/// than usual; or it usually runs out, as a lease that keeps a job from running too often. Where
/// that is a mistake, [`ConditionKind::HoldNearTtl`] reports it once for the prefix.
fn is_usual(
    snapshot: &LockSnapshot<'_>,
    track_ms: i64,
    usual: &dyn Fn(&LockSnapshot<'_>) -> Option<UsualHold>,
) -> bool {
    usual(snapshot).is_some_and(|usual| {
        let ends_in_time = usual.p95_ms < track_ms && snapshot.held_ms <= usual.p95_ms;
        ends_in_time || share(usual.p50_ms, track_ms) >= RUNS_OUT_SHARE
    })
}

/// A lease with an unknown end may still be running: an alert on it keeps its state.
const fn without_lease(facts: &Facts<'_>) -> ConditionResult {
    match facts.lifetime {
        LifetimeFacts::RanOut { .. } | LifetimeFacts::Unknown { .. } => ConditionResult::Unknown,
        LifetimeFacts::Leased { .. }
        | LifetimeFacts::Heartbeat { .. }
        | LifetimeFacts::NoTtl { .. }
        | LifetimeFacts::Session => ConditionResult::Clear,
    }
}

fn not_renewing(condition: &Condition, snapshot: &LockSnapshot<'_>) -> (ConditionResult, i64) {
    let facts = &snapshot.facts;
    let intervals = condition
        .value("intervals")
        .unwrap_or(diagnosis::SILENT_INTERVALS);
    if let LifetimeFacts::Heartbeat {
        silent_ms,
        stale_after_ms,
    } = facts.lifetime
    {
        // Scaled to the threshold, so that the chart shows both on one axis.
        let measure = silent_ms * intervals / stale_after_ms.max(1);
        return (holds_or_clear(silent_ms > stale_after_ms), measure);
    }
    let LifetimeFacts::Leased {
        remaining_ms,
        track_ms,
    } = facts.lifetime
    else {
        return (without_lease(facts), 0);
    };
    let Some(cadence) = facts.cadence else {
        // Not learnt yet, or learnt by an earlier process.
        return (ConditionResult::Unknown, 0);
    };
    let after = diagnosis::silent_after(
        cadence.longest_ms,
        facts.sampling_ms,
        track_ms,
        intervals,
        snapshot.lag_ms,
    );
    let measure = cadence.silent_ms * 100 / cadence.interval_ms.max(1);
    match remaining_ms > 0 {
        true => (holds_or_clear(cadence.silent_ms > after), measure),
        false => (ConditionResult::Unknown, measure),
    }
}

fn long_held(
    condition: &Condition,
    snapshot: &LockSnapshot<'_>,
    usual: &dyn Fn(&LockSnapshot<'_>) -> Option<UsualHold>,
) -> (ConditionResult, i64) {
    let held = snapshot.held_ms;
    let is_above = condition.value("longer_than").is_some_and(|limit| held > limit);
    let Some(times) = condition.value("times_p95") else {
        return (condition_result(snapshot, is_above), held);
    };
    if held <= condition.value("at_least").unwrap_or(0) {
        return (condition_result(snapshot, is_above), 0);
    }
    let p95 = usual(snapshot).map(|usual| usual.p95_ms);
    let measure = p95.map_or(0, |p95| held * 100 / p95.max(1));
    (condition_result(snapshot, is_above || measure > times), measure)
}

/// If the backend does not report the acquisition time, hold time counts from the first
/// observation: a lower bound.
fn condition_result(snapshot: &LockSnapshot<'_>, is_above: bool) -> ConditionResult {
    match (is_above, snapshot.acquired_at) {
        (true, _) => ConditionResult::Holds,
        (false, Some(_)) => ConditionResult::Clear,
        (false, None) => ConditionResult::Unknown,
    }
}

/// Why the lock is, or may be, one that a client has left in a pool.
fn leak<'a>(facts: &Facts<'a>) -> Option<&'a str> {
    match facts.condition? {
        observation::ObservedCondition::Note { why } | observation::ObservedCondition::Orphaned { why } => {
            Some(why.as_ref()).filter(|why| why.contains("pooler"))
        }
        _ => None,
    }
}

fn is_leaked(facts: &Facts<'_>) -> bool {
    leak(facts).is_some()
}

/// In thousandths.
pub(super) const fn share(part: i64, whole: i64) -> i64 {
    if whole <= 0 { 0 } else { part * 1_000 / whole }
}

/// The sentence of an alert on a lock for which the condition holds.
pub fn lock_sentence(
    condition: &Condition,
    snapshot: &LockSnapshot<'_>,
    measure: i64,
    usual: Option<UsualHold>,
) -> String {
    let facts = &snapshot.facts;
    match condition.kind {
        ConditionKind::LongHeld => {
            let held = format::period(snapshot.held_ms / 1_000 * 1_000);
            let at_least = if snapshot.acquired_at.is_some() {
                ""
            } else {
                "at least "
            };
            match usual.filter(|_| measure > 0 && condition.value("times_p95").is_some()) {
                Some(usual) => format!(
                    "Held for {at_least}{held}, {} times its p95 of {}{}.",
                    format::measure(times(measure)),
                    format::duration(usual.p95_ms),
                    left_out(usual.uncertain)
                ),
                None => format!("Held for {at_least}{held}."),
            }
        }
        ConditionKind::WaiterAge => {
            format!("The first waiter has waited for {}.", format::duration(measure))
        }
        ConditionKind::Leaked => leak(facts).map_or_else(String::new, |why| format!("{why}.")),
        kind => state_of(kind)
            .and_then(|states| {
                let reasons = diagnosis::explain(facts, diagnosis::diagnose(facts));
                reasons.into_iter().find(|reason| states.contains(&reason.state))
            })
            .map_or_else(|| silence(facts), |reason| reason.why),
    }
}

/// Holds without a known length.
fn left_out(uncertain: usize) -> String {
    match uncertain {
        0 => String::new(),
        uncertain => {
            let holds = format::counted(uncertain as u64, "hold", "holds");
            format!(" ({holds} of uncertain length not counted)")
        }
    }
}

/// Silence that the diagnosis does not report yet, because this condition is stricter.
fn silence(facts: &Facts<'_>) -> String {
    let LifetimeFacts::Leased { remaining_ms, .. } = facts.lifetime else {
        return String::new();
    };
    let left = format::duration(remaining_ms);
    match facts.cadence {
        Some(cadence) => format!(
            "Renewed every {}, silent for {}. Expires in {left}.",
            format::duration(cadence.interval_ms),
            format::duration(cadence.silent_ms)
        ),
        None => format!("Never seen to renew; {left} left."),
    }
}

const fn state_of(kind: ConditionKind) -> Option<&'static [LockState]> {
    match kind {
        ConditionKind::NearExpiry => Some(&[LockState::NotRenewing, LockState::NearExpiry]),
        ConditionKind::NotRenewing => Some(&[LockState::NotRenewing]),
        ConditionKind::DualOwner => Some(&[LockState::DualOwner]),
        ConditionKind::Split => Some(&[LockState::Split]),
        ConditionKind::QuorumLost => Some(&[LockState::QuorumLost]),
        ConditionKind::NoTtl => Some(&[LockState::NoTtl]),
        ConditionKind::Expired => Some(&[LockState::Expired]),
        ConditionKind::Orphaned => Some(&[LockState::Orphaned]),
        _ => None,
    }
}

fn times(hundredths: i64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "it is shown with one decimal")]
    let times = (hundredths / 10) as f64 / 10.0;
    times
}
