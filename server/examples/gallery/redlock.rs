//! Two made-up Redlocks without a quorum, as the nodes of one would show them.

use domain::lock::Lock;
use domain::names::OwnerId;
use domain::observation::ObservedCondition;
use domain::quorum::{NodeCell, Quorum, QuorumState};

use crate::locks::{CannedLock, Life};

const SPLIT: &str = "lock:checkout:settlement:batch-77";
const LOST: &str = "lock:checkout:settlement:batch-78";
const TTL_MS: i64 = 20_000;

pub(crate) fn locks() -> [CannedLock; 2] {
    let life = Life::Renewed {
        ttl: TTL_MS,
        every: 13_000,
        until: None,
    };
    let lock = |name: &'static str, owner: &'static str, condition| CannedLock {
        source: Some("redlock"),
        condition: Some(condition),
        ..("redis-cache", name, owner, 72_000, life, 0).into()
    };
    let split = "2 values at once, none on 3 of 5 nodes: api-14 on 2, api-09 on 2; redlock-e does not answer";
    let lost = "Its value had a quorum and is on 1 of 5 nodes now: redlock-b";
    let split = lock(SPLIT, "", ObservedCondition::Split { why: split.into() });
    [
        CannedLock { owner: None, ..split },
        lock(LOST, "api-11", ObservedCondition::QuorumLost { why: lost.into() }),
    ]
}

/// The nodes of such a lock.
pub(crate) fn quorum(lock: &Lock) -> Option<Quorum> {
    let (state, owners) = match lock.id.resource.text().as_str() {
        SPLIT => (QuorumState::Split, ["api-14", "api-14", "api-09", "api-09", "?"]),
        LOST => (QuorumState::Lost, ["", "api-11", "", "", ""]),
        _ => return None,
    };
    let names = ["redlock-a", "redlock-b", "redlock-c", "redlock-d", "redlock-e"];
    let cells = names.into_iter().zip(owners);
    Some(Quorum {
        state,
        needed: 3,
        nodes: cells.map(|(name, owner)| node(name, owner)).collect(),
    })
}

fn node(name: &str, owner: &str) -> NodeCell {
    let (rank, value, left) = match owner {
        "" | "?" => (None, None, None),
        "api-09" => (Some(1), Some("5b204de7"), Some(8_300)),
        _ => (Some(0), Some("9f3a61c1"), Some(7_900)),
    };
    let reachable = owner != "?";
    NodeCell {
        node: format!("{name}:6379"),
        reachable,
        rank,
        value: value.map(str::to_owned),
        owner_id: rank.map(|_| OwnerId::new(owner)),
        remaining_ms: left,
        age_ms: Some(if reachable { 1_900 } else { 203_000 }),
        answer_ms: reachable.then_some(2),
        clock_offset_ms: Some(4),
        fault: (!reachable).then(|| "no answer within 2000 ms".to_owned()),
    }
}
