//! Sentences of a diagnosis: the reason for each state.

use super::{Facts, LifetimeFacts, StateSet, is_below_low};
use crate::format;
use crate::observation::ObservedCondition;
use crate::state::{LockState, StateReason};

/// One sentence per state that holds, worst first; one for a healthy lock too.
pub fn explain(facts: &Facts<'_>, verdict: StateSet) -> Vec<StateReason> {
    let mut reasons: Vec<StateReason> = LockState::ALL
        .into_iter()
        .filter(|state| verdict.holds(*state))
        .map(|state| StateReason {
            state,
            why: sentence(state, facts),
        })
        .collect();
    if reasons.is_empty() {
        reasons.push(StateReason {
            state: LockState::Healthy,
            why: sentence(LockState::Healthy, facts),
        });
    }
    if let (Some(ObservedCondition::Note { why }), Some(first)) = (facts.condition, reasons.first_mut()) {
        first.why = format!("{} {why}.", first.why);
    }
    reasons
}

fn sentence(state: LockState, facts: &Facts<'_>) -> String {
    match state {
        LockState::Expired => expired_sentence(facts),
        LockState::NotRenewing | LockState::NearExpiry => silence_sentence(state, facts),
        LockState::Contended => contended_sentence(facts),
        LockState::Orphaned | LockState::Unknown => match (facts.condition, facts.lifetime) {
            (
                Some(
                    ObservedCondition::Orphaned { why }
                    | ObservedCondition::Unrecognised { why }
                    | ObservedCondition::Undecided { why },
                ),
                _,
            ) => format!("{why}."),
            (_, LifetimeFacts::Unknown { why }) => format!("{why}."),
            _ => "This backend does not report enough to diagnose it.".to_owned(),
        },
        LockState::NoTtl => match facts.lifetime {
            LifetimeFacts::NoTtl { why } => format!("It never expires by itself: {why}."),
            _ => "It never expires by itself.".to_owned(),
        },
        LockState::Healthy => healthy_sentence(facts),
        LockState::DualOwner | LockState::Split | LockState::QuorumLost => match facts.condition {
            Some(
                ObservedCondition::DualOwner { why }
                | ObservedCondition::Split { why }
                | ObservedCondition::QuorumLost { why },
            ) => {
                format!("{why}.")
            }
            _ => format!("It is {}.", state.label()),
        },
        LockState::LongHeld => "It is held for longer than a rule allows.".to_owned(),
        LockState::Stale => format!("It is {}.", state.label()),
    }
}

fn remaining(facts: &Facts<'_>) -> i64 {
    match facts.lifetime {
        LifetimeFacts::Leased { remaining_ms, .. } => remaining_ms,
        LifetimeFacts::RanOut { .. }
        | LifetimeFacts::Heartbeat { .. }
        | LifetimeFacts::NoTtl { .. }
        | LifetimeFacts::Session
        | LifetimeFacts::Unknown { .. } => 0,
    }
}

fn expired_sentence(facts: &Facts<'_>) -> String {
    if let LifetimeFacts::RanOut { ago_ms } = facts.lifetime {
        let ago = format::duration(ago_ms);
        return format!("Its lease ran out {ago} ago, after the last scan, and no renewal was seen.");
    }
    let ago = format::duration(-remaining(facts));
    match facts.cadence {
        Some(cadence) => format!(
            "Its lease ran out {ago} ago and the record is still there. It renewed every {} until then.",
            format::duration(cadence.interval_ms)
        ),
        None => format!("Its lease ran out {ago} ago and the record is still there."),
    }
}

fn silence_sentence(state: LockState, facts: &Facts<'_>) -> String {
    let left = format::duration(remaining(facts));
    if let LifetimeFacts::Heartbeat {
        silent_ms,
        stale_after_ms,
    } = facts.lifetime
    {
        let silent = format::duration(silent_ms);
        let interval_sentence = facts.cadence.map_or_else(String::new, |cadence| {
            format!(
                " It used to give one every {}.",
                format::duration(cadence.interval_ms)
            )
        });
        let limit = format::period(stale_after_ms);
        return format!("No sign of life for {silent}; `stale_after` is {limit}.{interval_sentence}");
    }
    match (facts.cadence, facts.lifetime) {
        (Some(cadence), _) if state == LockState::NotRenewing => format!(
            "Renewed every {}, silent for {}. Expires in {left}.",
            format::duration(cadence.interval_ms),
            format::duration(cadence.silent_ms)
        ),
        (_, LifetimeFacts::Leased { remaining_ms, .. }) if is_below_low(facts, remaining_ms) => {
            format!(
                "Less is left than at any renewal before: {left}.{}",
                renewal_sentence(facts)
            )
        }
        (Some(cadence), _) => format!(
            "One renewal missed. It renews every {}; the last was {} ago.",
            format::duration(cadence.interval_ms),
            format::duration(cadence.silent_ms)
        ),
        (None, LifetimeFacts::Leased { track_ms, .. }) => {
            let renewed = if facts.renewals == 0 {
                "Never seen to renew"
            } else {
                "Renewed once"
            };
            format!("{renewed}; {left} of {} left.", format::duration(track_ms))
        }
        (None, _) => format!("{left} left."),
    }
}

fn renewal_sentence(facts: &Facts<'_>) -> String {
    facts.cadence.map_or_else(String::new, |cadence| {
        let interval = format::duration(cadence.interval_ms);
        let ago = format::duration(cadence.silent_ms);
        format!(" It renews every {interval}; the last was {ago} ago.")
    })
}

fn contended_sentence(facts: &Facts<'_>) -> String {
    let waiting = match facts.waiters {
        Some(1) => "One waits for it.".to_owned(),
        Some(count) => format!("{} wait for it.", format::count(u64::from(count))),
        None => String::new(),
    };
    match facts.oldest_waiter_ms {
        Some(ms) => format!("{waiting} Oldest waiter {}.", format::duration(ms)),
        None => waiting,
    }
}

fn healthy_sentence(facts: &Facts<'_>) -> String {
    match (facts.cadence, facts.lifetime) {
        (Some(cadence), _) => format!(
            "It renews every {}, the last was {} ago.",
            format::duration(cadence.interval_ms),
            format::duration(cadence.silent_ms)
        ),
        (
            None,
            LifetimeFacts::Heartbeat {
                silent_ms,
                stale_after_ms,
            },
        ) => format!(
            "Its last sign of life was {} ago; it is not renewing after {} without one.",
            format::duration(silent_ms),
            format::period(stale_after_ms)
        ),
        (None, LifetimeFacts::Session) => "It lives as long as the session that holds it.".to_owned(),
        (None, _) => "Its lease runs and no owner waits.".to_owned(),
    }
}
