//! What a read after a release says about the reviewed holding.

use domain::force_release::Holding;
use domain::generation::Generation;
use domain::observation::Inspection;
use domain::quorum::QuorumState;
use domain::reported::Reported;
use domain::unlock::ObservedHolding;

#[derive(Debug, PartialEq)]
pub(super) enum Finding {
    /// With the current holder.
    Gone(Option<Holding>),
    StillThere,
    Unknown,
}

pub(super) fn finding(inspection: &Inspection, reviewed: &ObservedHolding) -> Finding {
    let reviewed_state = reviewed.quorum.as_ref().map(|quorum| quorum.state);
    compare(inspection, &reviewed.generation, reviewed_state)
}

/// The current holder; `None` if the lease has run out, or if its value is on a minority of the nodes.
pub(super) fn holder(inspection: &Inspection) -> Option<Holding> {
    let lock = inspection.lock.as_ref().filter(|lock| !lock.is_expired())?;
    (!is_on_minority(quorum_state(inspection))).then(|| Holding::from(lock))
}

fn quorum_state(inspection: &Inspection) -> Option<QuorumState> {
    inspection.quorum.as_ref().map(|quorum| quorum.state)
}

fn is_on_minority(state: Option<QuorumState>) -> bool {
    matches!(state, Some(QuorumState::Lost | QuorumState::Leftover))
}

/// The generation of a lock on several nodes is the same with one copy as with a quorum: the state of the quorum decides.
/// Copies that were reviewed as a minority are gone only with the last one.
fn compare(inspection: &Inspection, generation: &Generation, reviewed_state: Option<QuorumState>) -> Finding {
    let Some(lock) = &inspection.lock else {
        return Finding::Gone(None);
    };
    let state = quorum_state(inspection);
    if state == Some(QuorumState::Unknown) {
        return Finding::Unknown;
    }
    match &lock.generation {
        Reported::Value(now) if now != generation => Finding::Gone(holder(inspection)),
        Reported::Value(_) if lock.is_expired() => Finding::Gone(None),
        Reported::Value(_) if is_on_minority(state) && !is_on_minority(reviewed_state) => Finding::Gone(None),
        Reported::Value(_) => Finding::StillThere,
        Reported::Unknown(_) | Reported::NotApplicable(_) => Finding::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use domain::names::{Resource, Source};
    use domain::observation::{Lifetime, ObservedLock};
    use domain::quorum::Quorum;

    use super::*;

    fn read(generation: &str, state: Option<QuorumState>) -> Inspection {
        let lock = ObservedLock {
            source: Source::fixed("redlock"),
            resource: Resource::from("lock:a"),
            owner: Reported::unknown("not read"),
            owner_count: 1,
            sharers: Vec::new(),
            lease_id: Reported::unknown("not read"),
            generation: Reported::Value(Generation::new(generation)),
            fencing_token: Reported::unknown("not read"),
            acquired_at: Reported::unknown("not read"),
            renewed_at: Reported::unknown("not read"),
            lifetime: Lifetime::Leased {
                remaining_ms: 60_000,
                ttl_ms: Reported::unknown("not read"),
            },
            waiter_count: Reported::Value(0),
            oldest_waiter_ms: None,
            line: Vec::new(),
            condition: None,
        };
        let quorum = |state| Quorum {
            state,
            needed: 2,
            nodes: Vec::new(),
        };
        Inspection {
            lock: Some(lock),
            quorum: state.map(quorum),
            ..Inspection::default()
        }
    }

    #[test]
    fn a_value_on_a_minority_of_nodes_is_gone() {
        // The same value: with a quorum, on a minority after a release of two copies, and with nodes that do not answer.
        let reviewed = Generation::new("value:a");
        let held = Some(QuorumState::Held);
        let found = |state| compare(&read("value:a", Some(state)), &reviewed, held);
        assert_eq!(found(QuorumState::Held), Finding::StillThere);
        assert_eq!(found(QuorumState::Lost), Finding::Gone(None));
        assert_eq!(found(QuorumState::Leftover), Finding::Gone(None));
        assert_eq!(found(QuorumState::Unknown), Finding::Unknown);
        // Reviewed as a minority: one copy is left, and it may be every copy that there was.
        let leftover = Some(QuorumState::Leftover);
        let same = read("value:a", leftover);
        assert_eq!(compare(&same, &reviewed, leftover), Finding::StillThere);
        // Without nodes, and with the next value on a quorum.
        assert_eq!(
            compare(&read("value:a", None), &reviewed, None),
            Finding::StillThere
        );
        let next = compare(&read("value:b", held), &reviewed, held);
        assert!(matches!(next, Finding::Gone(Some(_))), "{next:?}");
    }
}
