use std::fmt::Debug;

use domain::names::{BackendName, Resource};
use serde::de::DeserializeOwned;

use super::*;
use crate::api::codec;

fn survives<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let bytes = codec::write(value).unwrap();
    assert_eq!(codec::read::<T>(&bytes).as_ref(), Ok(value));
}

fn lock() -> LockId {
    LockId {
        backend: BackendName::builtin(),
        source: Source::fixed("lease"),
        resource: Resource::from("jobs/a".to_owned()),
    }
}

fn holder() -> HolderData {
    HolderData {
        owner_id: Reported::Value(OwnerId::new("worker-7")),
        owner_count: 2,
        lease_id: Reported::unknown("it is not reported"),
        fencing_token: Reported::absent("this kind has no token"),
        acquired_at: Reported::Value(DateTime::UNIX_EPOCH),
        held_ms: Reported::Value(5),
        held_at_least_ms: None,
        ttl_ms: Reported::Value(30_000),
        remaining_ms: Reported::Value(10_000),
        renewal: Reported::unknown("not seen yet"),
        is_silent: true,
        read_at: DateTime::UNIX_EPOCH,
    }
}

fn effects() -> ReleaseEffects {
    let session = CasualtyRow {
        kind: CasualtyKind::Session,
        what: "session 7".to_owned(),
    };
    ReleaseEffects {
        casualties: vec![session],
        next: Some(OwnerId::new("worker-9")),
        warnings: vec!["It is rolled back.".to_owned()],
        waiters: Vec::new(),
    }
}

fn unlock() -> UnlockData {
    let holding = Holding {
        owner_id: holder().owner_id,
        lease_id: holder().lease_id,
        generation: Reported::Value(Generation::new("rev:1")),
        fencing_token: holder().fencing_token,
    };
    let approval = Approval {
        by_id: "u_1".to_owned(),
        by_name: "bob".to_owned(),
        at: DateTime::UNIX_EPOCH,
    };
    UnlockData {
        id: "unl_1".to_owned(),
        state: UnlockState::OutcomeUnknown,
        lock: lock(),
        by_name: "ada".to_owned(),
        reason: "stuck since 03:00".to_owned(),
        holding: holding.clone(),
        holder: holder(),
        effects: effects(),
        created_at: DateTime::UNIX_EPOCH,
        expires_at: DateTime::UNIX_EPOCH,
        approval: Some(approval.clone()),
        break_glass: Some(BreakGlass {
            reason: "no approver answers".to_owned(),
            review: Some(approval),
        }),
        acted_at: Some(DateTime::UNIX_EPOCH),
        ended_at: None,
        ending: EndedHolding {
            now: Some(holding),
            is_read: true,
            why: Some("no answer".to_owned()),
            ..EndedHolding::default()
        },
        intent_entry: 7,
        last_entry: 9,
        rereads: 2,
    }
}

#[test]
fn review_data_survives_its_encoding() {
    // A lock with every optional part, a choice of sources, and no lock.
    let hindrance = Hindrance {
        why: "the backend is stale".to_owned(),
        remedy: Some("wait for the next scan".to_owned()),
    };
    survives(&ReviewData::Lock(Box::new(ReviewedLock {
        quorum: None,
        id: lock(),
        owner: Some("worker-7".to_owned()),
        holder: holder(),
        is_fresh: true,
        effects: Some(effects()),
        generation: Some("rev:1".to_owned()),
        protection: Some("this name is protected".to_owned()),
        hindrance: Some(hindrance),
        has_changed: true,
    })));
    survives(&ReviewData::Sources {
        name: "a".to_owned(),
        sources: vec![Source::fixed("lease")],
    });
    survives(&ReviewData::Nothing(NothingToUnlock {
        status: 404,
        why: "not held".to_owned(),
        name: None,
    }));
}

#[test]
fn a_step_survives_its_encoding() {
    // Every kind of proof.
    let proofs = [
        Proof::Fresh(1),
        Proof::Password,
        Proof::SignIn { at_provider: true },
        Proof::Never,
    ];
    for proof in proofs {
        survives(&StepData::Unlock(Box::new(UnlockStep {
            unlock: unlock(),
            now: DateTime::UNIX_EPOCH,
            protection: Some("this name is protected".to_owned()),
            is_owner: true,
            hindrance: None,
            proof,
            unapproved: Some("a second approver must approve first".to_owned()),
            may_approve: false,
            may_review: true,
            refused_as_second: None,
            approvers: vec!["bob".to_owned()],
            receivers: 3,
            may_read_audit: true,
            link: "https://leasehold.example/unlocks/unl_1".to_owned(),
        })));
    }
}

#[test]
fn bulk_data_survives_its_encoding() {
    // The selection, and an item that is confirmed on its own page.
    survives(&BulkSelectData {
        backends: vec!["builtin".to_owned()],
        backend: String::new(),
        prefix: "jobs/".to_owned(),
        owner: String::new(),
        rows: vec![CandidateRow {
            id: lock(),
            generation: Reported::Value(Generation::new("rev:1")),
            owner_id: holder().owner_id,
            held_ms: Reported::unknown("not reported"),
            held_at_least_ms: 5,
            state: LockState::Healthy,
        }],
        total: 80,
        is_complete: false,
    });
    let item = BulkItem {
        unlock: unlock(),
        elsewhere: Some("only ada can confirm it".to_owned()),
    };
    assert!(!item.is_open());
    survives(&BulkConfirmData { items: vec![item] });
}
