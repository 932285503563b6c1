//! Next steps for one lock, by state and reading, for an on-call engineer.
//!
//! Rules only: no history, no links. They never claim that breaking a lock is safe, because no
//! lock service can know.

use crate::backend::BackendStatus;
use crate::escape::visible;
use crate::format;
use crate::lock::Lock;
use crate::lock_detail::LockDetail;
use crate::quorum::{Quorum, QuorumState};
use crate::reported::Reported;
use crate::state::LockState;

/// An action with what to know before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextStep {
    pub head: String,
    pub body: String,
}

const STEPS_MAX: usize = 4;

/// At most four steps, in order. Empty if there is nothing to do.
pub fn next_steps(detail: &LockDetail) -> Vec<NextStep> {
    if detail.is_gone() {
        return vec![step(
            "Not held.",
            "Any client can acquire it. If work is still stuck, check other locks.",
        )];
    }
    let mut steps = Vec::new();
    if detail.backend_status.blinds_rows() {
        steps.push(fix_backend_step(detail));
    }
    let mut states: Vec<LockState> = detail.lock.reasons.iter().map(|reason| reason.state).collect();
    if !states.contains(&detail.lock.state) {
        states.insert(0, detail.lock.state);
    }
    for state in states {
        steps.extend(for_state(state, detail));
    }
    if detail.lock.session_bound && !is_reported_gone(&detail.lock) {
        steps.extend(for_session(detail));
    }
    if steps.iter().any(|step| step.head != NOTHING) {
        steps.retain(|step| step.head != NOTHING);
    }
    let mut seen = Vec::new();
    steps.retain(|step| {
        let is_new = !seen.contains(&step.head);
        seen.push(step.head.clone());
        is_new
    });
    steps.truncate(STEPS_MAX);
    steps
}

const NOTHING: &str = "Nothing to do.";

fn is_reported_gone(lock: &Lock) -> bool {
    lock.reasons
        .iter()
        .any(|reason| reason.state == LockState::Orphaned)
}

fn for_state(state: LockState, detail: &LockDetail) -> Vec<NextStep> {
    let lock = &detail.lock;
    let owner = owner(lock);
    match state {
        LockState::NotRenewing => for_silent_holder(detail),
        LockState::NearExpiry => vec![step(
            format!("Wait for one more renewal of {owner}."),
            "One late renewal is often a slow network or a long pause. If the next one stays out too, the state becomes not renewing.",
        )],
        LockState::Expired => vec![
            step(
                "Let the next owner reclaim it.",
                "A client that compares the expiry takes it over. If none does, no client wants it, or the clients do not compare.",
            ),
            late_writes(lock),
        ],
        LockState::NoTtl => no_ttl(lock),
        LockState::Split => without_quorum(detail, "Stop all but one of the owners."),
        LockState::QuorumLost => without_quorum(detail, "Stop its owner."),
        LockState::Orphaned if quorum(detail).is_some() => vec![step(
            "Wait for its end, or release it.",
            "An attempt or a release has left a copy on a minority of the nodes. It blocks no acquire that gets the other nodes.",
        )],
        LockState::Orphaned => vec![step(
            "End the session that keeps it.",
            "Its owner is gone and will not release it. The session, transaction or pooler connection that keeps it is in the raw record.",
        )],
        LockState::Contended => for_contention(detail),
        LockState::LongHeld => vec![step(
            format!("Check what {owner} is doing."),
            "It holds for longer than a long-held rule allows. Its hold times on this page show how long it usually takes.",
        )],
        LockState::DualOwner => vec![
            step(
                "Stop both writers.",
                "More than one owner may act as holder. Stop both before you release anything.",
            ),
            late_writes(lock),
        ],
        LockState::Unknown if quorum(detail).is_some_and(|quorum| quorum.state == QuorumState::Unknown) => {
            restore_nodes(detail).into_iter().collect()
        }
        LockState::Unknown => vec![step(
            "Read the raw record.",
            "Its format gives no lock state. If it is not a lock, exclude it with a narrower pattern in leasehold.toml.",
        )],
        LockState::Stale => Vec::new(),
        LockState::Healthy => vec![step(
            NOTHING,
            "The lock is healthy. If work is stuck, check what its owner is doing.",
        )],
    }
}

fn quorum(detail: &LockDetail) -> Option<&Quorum> {
    detail.fresh.known()?.quorum.as_ref()
}

/// For a Redlock: owners first, then nodes, then the values that remain.
fn without_quorum(detail: &LockDetail, stop: &str) -> Vec<NextStep> {
    let nodes = quorum(detail).map_or(0, |quorum| quorum.nodes.len());
    let mut steps = vec![step(
        stop,
        "Each of them may act as holder, and nothing on the nodes says which one is right.",
    )];
    steps.extend(restore_nodes(detail));
    steps.push(step(
        "Release what remains.",
        format!(
            "A forced unlock compares and deletes on all {nodes} nodes, with a result per node; the next acquire starts clean."
        ),
    ));
    steps
}

fn restore_nodes(detail: &LockDetail) -> Option<NextStep> {
    let silent: Vec<&str> = quorum(detail)?
        .unreachable()
        .map(|cell| cell.node.as_str())
        .collect();
    (!silent.is_empty()).then(|| {
        step(
            format!("Restore {}.", silent.join(" and ")),
            "It does not answer, and may have the copy that makes a quorum.",
        )
    })
}

fn fix_backend_step(detail: &LockDetail) -> NextStep {
    let name = &detail.lock.id.backend;
    let verb = if detail.backend_status == BackendStatus::Down {
        "is down"
    } else {
        "does not answer"
    };
    let remedy = detail
        .backend_fault
        .as_ref()
        .map_or("The Backends page says why.", |fault| fault.remedy.as_str());
    step(
        format!("Restore {name} first: it {verb}."),
        format!(
            "The data was read {} ago and may be out of date. {}",
            format::duration(detail.lock.age_ms),
            visible(remedy)
        ),
    )
}

fn for_silent_holder(detail: &LockDetail) -> Vec<NextStep> {
    let lock = &detail.lock;
    let owner = owner(lock);
    let renewals = lock.renewal.known().map_or_else(String::new, |renewal| {
        format!(
            "It renewed every {} and has been silent for {}. ",
            format::duration(renewal.interval_ms),
            format::duration(renewal.last_ago_ms)
        )
    });
    let left = lock
        .remaining_ms
        .known()
        .filter(|ms| **ms > 0 && !lock.is_stale())
        .map_or_else(String::new, |ms| {
            format!(" Its lease ends by itself in {}.", format::duration(*ms))
        });
    vec![
        step(
            format!("Check {owner} now."),
            format!("{renewals}It is paused, cut off or dead.{left}"),
        ),
        late_writes(lock),
    ]
}

/// Promise 2 of the product: only the protected resource can reject a paused holder.
fn late_writes(lock: &Lock) -> NextStep {
    let head = "Expect late writes.";
    match &lock.fencing_token {
        Reported::Value(token) => step(
            head,
            format!(
                "A paused owner may still write when its lease has ended. A resource that compares tokens refuses {token} once it has seen a higher one."
            ),
        ),
        Reported::NotApplicable(_) => step(
            head,
            "A paused owner may still write when its lease has ended, and this lock has no fencing token by which a resource could refuse it.",
        ),
        Reported::Unknown(_) => step(
            head,
            "A paused owner may still write when its lease has ended. Whether a fencing token is compared is not known here.",
        ),
    }
}

fn no_ttl(lock: &Lock) -> Vec<NextStep> {
    vec![
        step(
            format!("Find out whether {} still works on it.", owner(lock)),
            "It never expires: if its owner died, waiters wait until a user releases it.",
        ),
        step("Then fix the client.", lock.kind.ttl_remedy()),
    ]
}

fn for_contention(detail: &LockDetail) -> Vec<NextStep> {
    let lock = &detail.lock;
    let line = detail.next_waiter().map_or_else(String::new, |waiter| {
        format!(" {} is next.", visible(waiter.owner_id.as_str()))
    });
    vec![
        step(
            format!("Check what {} is doing.", owner(lock)),
            format!("The whole queue waits for it.{line}"),
        ),
        step(
            "If this recurs, do without the lock.",
            "A queue, or one lock per partition, keeps work moving where one resource is always contended.",
        ),
    ]
}

fn for_session(detail: &LockDetail) -> Vec<NextStep> {
    let Some(session) = detail.fresh.known().and_then(|fresh| fresh.session.as_ref()) else {
        return Vec::new();
    };
    if !session.state.starts_with("idle in transaction") {
        return Vec::new();
    }
    let age = session
        .transaction_age_ms
        .map_or_else(String::new, |ms| format!(" for {}", format::duration(ms)));
    vec![step(
        "Let its owner commit or roll back.",
        format!(
            "Session {} is idle in a transaction{age}: it holds the lock and does nothing.",
            session.pid
        ),
    )]
}

fn owner(lock: &Lock) -> String {
    match lock.owner_id.known() {
        Some(owner) if owner.as_str().chars().count() <= 60 => visible(owner.as_str()).into_owned(),
        Some(_) | None => "its owner".to_owned(),
    }
}

fn step(head: impl Into<String>, body: impl Into<String>) -> NextStep {
    NextStep {
        head: head.into(),
        body: body.into(),
    }
}

#[cfg(test)]
mod tests;
