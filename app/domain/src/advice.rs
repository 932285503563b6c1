//! What to do next about one lock: text by state and by what was read, for a person at 3 a.m.
//!
//! Rules only: no history, no links. It never says that breaking a lock is safe, because no lock service can know.

use crate::backend::{BackendKind, BackendStatus};
use crate::detail::LockDetail;
use crate::escape::visible;
use crate::human;
use crate::known::Known;
use crate::lock::Lock;
use crate::state::LockState;

/// One step: what to do, and what to know before doing it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub head: String,
    pub body: String,
}

const STEPS_MAX: usize = 4;

/// At most four steps, in order. Empty when there is nothing to do.
pub fn next_steps(detail: &LockDetail) -> Vec<Step> {
    if detail.is_gone() {
        return vec![step(
            "Nothing is held.",
            "Whoever wants it can take it. If work is still stuck, look for another lock.",
        )];
    }
    let mut steps = Vec::new();
    if detail.backend_status.blinds_rows() {
        steps.push(mend_backend(detail));
    }
    let mut states: Vec<LockState> = detail.lock.reasons.iter().map(|reason| reason.state).collect();
    if !states.contains(&detail.lock.state) {
        states.insert(0, detail.lock.state);
    }
    for state in states {
        steps.extend(for_state(state, detail));
    }
    if detail.lock.session_bound && !states_say_gone(&detail.lock) {
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

fn states_say_gone(lock: &Lock) -> bool {
    lock.reasons
        .iter()
        .any(|reason| reason.state == LockState::HolderGone)
}

fn for_state(state: LockState, detail: &LockDetail) -> Vec<Step> {
    let lock = &detail.lock;
    let owner = owner(lock);
    match state {
        LockState::NotRenewing => silent(detail),
        LockState::NearExpiry => vec![step(
            format!("Wait for one more renewal of {owner}."),
            "One late renewal is often a slow network or a long pause. If the next one stays out too, the state becomes not renewing.",
        )],
        LockState::ExpiredPresent => vec![
            step(
                "Let the next owner reclaim it.",
                "A client that compares the expiry takes it over by itself. If none does, nobody is asking for it, or the clients do not compare.",
            ),
            late_writes(lock),
        ],
        LockState::NoTtl => no_ttl(lock),
        LockState::HolderGone => vec![step(
            "End what keeps it.",
            "Whoever took it is gone, so nobody will release it. The session, transaction or pooler connection that keeps it is in the raw record.",
        )],
        LockState::Contended => contended(detail),
        LockState::LongHeld => vec![step(
            format!("Look at what {owner} is doing."),
            "It holds for longer than a long-held rule allows. Its hold times on this page show how long it usually takes.",
        )],
        LockState::TwoBelievers => vec![
            step(
                "Stop what writes.",
                "More than one owner may believe that it holds this. Stop both before you break anything.",
            ),
            late_writes(lock),
        ],
        LockState::Unknown => vec![step(
            "Read the raw record.",
            "Its shape tells too little to judge it. If it is no lock, leave it out with a narrower pattern in leasehold.toml.",
        )],
        LockState::Stale => Vec::new(),
        LockState::Healthy => vec![step(
            NOTHING,
            "It does what a lock should. If work is stuck all the same, look at what its owner is doing.",
        )],
    }
}

fn mend_backend(detail: &LockDetail) -> Step {
    let name = &detail.lock.id.backend;
    let verb = if detail.backend_status == BackendStatus::Down {
        "is down"
    } else {
        "does not answer"
    };
    let mend = detail
        .backend_fault
        .as_ref()
        .map_or("The Backends page says why.", |fault| fault.mend.as_str());
    step(
        format!("Mend {name} first: it {verb}."),
        format!(
            "What stands here was true {} ago and may not be now. {}",
            human::duration(detail.lock.age_ms),
            visible(mend)
        ),
    )
}

fn silent(detail: &LockDetail) -> Vec<Step> {
    let lock = &detail.lock;
    let owner = owner(lock);
    let rhythm = lock.renewal.known().map_or_else(String::new, |renewal| {
        format!(
            "It renewed every {} and has been silent for {}. ",
            human::duration(renewal.interval_ms),
            human::duration(renewal.last_ago_ms)
        )
    });
    let left = lock
        .remaining_ms
        .known()
        .filter(|ms| **ms > 0 && !lock.is_stale())
        .map_or_else(String::new, |ms| {
            format!(" Its lease ends by itself in {}.", human::duration(*ms))
        });
    vec![
        step(
            format!("Look at {owner} now."),
            format!("{rhythm}It is paused, cut off or dead.{left}"),
        ),
        late_writes(lock),
    ]
}

/// Promise 2 of the product: only the protected resource can refuse a paused holder.
fn late_writes(lock: &Lock) -> Step {
    let head = "Expect late writes.";
    match &lock.fencing_token {
        Known::Known(token) => step(
            head,
            format!(
                "A paused owner may still write when its lease has ended. A resource that compares tokens refuses {token} once it has seen a higher one."
            ),
        ),
        Known::Absent(_) => step(
            head,
            "A paused owner may still write when its lease has ended, and this lock has no fencing token by which a resource could refuse it.",
        ),
        Known::Unknown(_) => step(
            head,
            "A paused owner may still write when its lease has ended. Whether a fencing token is compared is not known here.",
        ),
    }
}

fn no_ttl(lock: &Lock) -> Vec<Step> {
    let fix = match lock.kind {
        BackendKind::Redis => "Let its client set a TTL in the same command: SET key value NX PX 30000.",
        BackendKind::Etcd => "Let its client put the key on a lease.",
        BackendKind::Postgres => "Let its client write an expiry into the row.",
        BackendKind::Builtin => "Let its client ask for a TTL.",
    };
    vec![
        step(
            format!("Find out whether {} still works on it.", owner(lock)),
            "It never ends by itself: if its owner died, everyone waits until a person releases it.",
        ),
        step("Then mend the client.", fix),
    ]
}

fn contended(detail: &LockDetail) -> Vec<Step> {
    let lock = &detail.lock;
    let line = detail.next_in_line().map_or_else(String::new, |waiter| {
        format!(" {} is next.", visible(waiter.owner_id.as_str()))
    });
    vec![
        step(
            format!("Look at what {} is doing.", owner(lock)),
            format!("Everyone in the queue waits for it.{line}"),
        ),
        step(
            "If this comes again and again, do not lock.",
            "A queue, or one lock per partition, keeps work moving where one resource is always contended.",
        ),
    ]
}

fn for_session(detail: &LockDetail) -> Vec<Step> {
    let Some(session) = detail.fresh.known().and_then(|fresh| fresh.session.as_ref()) else {
        return Vec::new();
    };
    if !session.state.starts_with("idle in transaction") {
        return Vec::new();
    }
    let age = session
        .transaction_age_ms
        .map_or_else(String::new, |ms| format!(" for {}", human::duration(ms)));
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

fn step(head: impl Into<String>, body: impl Into<String>) -> Step {
    Step {
        head: head.into(),
        body: body.into(),
    }
}

#[cfg(test)]
mod tests;
