//! What one is looking at: who holds it, since when, what ends with it, who is next, and who may still write.

use chrono::{DateTime, Utc};
use domain::human;
use domain::known::Known;
use domain::lock::{Lock, Renewal};
use domain::names::{BackendName, LockId, OwnerId};
use domain::observation::Waiter;
use domain::release::{BlastRadius, Casualty, CasualtyKind};
use domain::token::FencingToken;
use domain::unlock::Observed;
use leptos::prelude::*;

use super::parts::{name, time, told};
use crate::components::facts::{Facts, known_or_why};
use crate::components::state_badge::Shape;

/// Lines shown at once; the rest is one press away.
const DIES_SHOWN: usize = 30;
const WAITERS_SHOWN: usize = 10;

/// One holding, fresh or as last seen.
pub(super) struct Seen<'a> {
    pub(super) owner_id: &'a Known<OwnerId>,
    pub(super) owner_count: u32,
    pub(super) lease_id: &'a Known<String>,
    pub(super) fencing_token: &'a Known<FencingToken>,
    acquired_at: &'a Known<DateTime<Utc>>,
    held_ms: &'a Known<i64>,
    held_at_least_ms: Option<i64>,
    ttl_ms: &'a Known<i64>,
    remaining_ms: &'a Known<i64>,
    renewal: &'a Known<Renewal>,
    is_silent: bool,
}

impl<'a> From<&'a Observed> for Seen<'a> {
    fn from(seen: &'a Observed) -> Self {
        Self {
            owner_id: &seen.owner_id,
            owner_count: seen.owner_count,
            lease_id: &seen.lease_id,
            fencing_token: &seen.fencing_token,
            acquired_at: &seen.acquired_at,
            held_ms: &seen.held_ms,
            held_at_least_ms: seen.held_at_least_ms,
            ttl_ms: &seen.ttl_ms,
            remaining_ms: &seen.remaining_ms,
            renewal: &seen.renewal,
            is_silent: seen.renewing.known() == Some(&false),
        }
    }
}

impl<'a> From<&'a Lock> for Seen<'a> {
    fn from(lock: &'a Lock) -> Self {
        Self {
            owner_id: &lock.owner_id,
            owner_count: lock.owner_count,
            lease_id: &lock.lease_id,
            fencing_token: &lock.fencing_token,
            acquired_at: &lock.acquired_at,
            held_ms: &lock.held_ms,
            held_at_least_ms: Some(lock.held_at_least_ms),
            ttl_ms: &lock.ttl_ms,
            remaining_ms: &lock.remaining_ms,
            renewal: &lock.renewal,
            is_silent: lock
                .reasons
                .iter()
                .any(|reason| reason.state == domain::state::LockState::NotRenewing),
        }
    }
}

/// The four facts and the runway.
pub(super) fn facts(seen: &Seen<'_>) -> AnyView {
    let cells = vec![
        ("held by", owner(seen)),
        ("held for", held(seen)),
        ("renewing", renewing(seen)),
        (
            "fencing token",
            known_or_why(seen.fencing_token, |token| token.to_string().into_any()),
        ),
    ];
    view! { <Facts cells/>{runway(seen)} }.into_any()
}

fn owner(seen: &Seen<'_>) -> AnyView {
    let others = seen.owner_count.saturating_sub(1);
    let others = (others > 0).then(|| format!("and {} more share it", human::count(u64::from(others))));
    let others = others.map(|others| view! { <small>{others}</small> });
    let lease = seen
        .lease_id
        .known()
        .map(|lease| view! { <small class="mono">"lease "{name(lease)}</small> });
    view! { {known_or_why(seen.owner_id, |owner| name(owner.as_str()))}{others}{lease} }.into_any()
}

fn held(seen: &Seen<'_>) -> AnyView {
    let since = seen
        .acquired_at
        .known()
        .map(|at| view! { <small>"since "{time(*at)}</small> });
    let text = match (seen.held_ms, seen.held_at_least_ms) {
        (Known::Known(ms), _) => human::duration(*ms),
        (_, Some(ms)) => format!("at least {}", human::duration(ms)),
        _ => "a moment".to_owned(),
    };
    view! { {text}{since} }.into_any()
}

fn renewing(seen: &Seen<'_>) -> AnyView {
    known_or_why(seen.renewal, |renewal| {
        let last = human::age(renewal.last_ago_ms);
        if seen.is_silent {
            return view! { <span class="st critical"><Shape name="not_renewing"/>"not any more"</span><small>{format!("the last one came {last} before this reading")}</small> }
                .into_any();
        }
        let every = format!("every {}", human::duration(renewal.interval_ms));
        view! { {every}<small>{format!("last {last} before this reading")}</small> }.into_any()
    })
}

/// As it was at the reading: it does not run.
fn runway(seen: &Seen<'_>) -> AnyView {
    let (Known::Known(left), Known::Known(ttl)) = (seen.remaining_ms, seen.ttl_ms) else {
        let word = match seen.remaining_ms {
            Known::Known(left) => format!("{} left; its TTL is unknown", human::duration(*left)),
            Known::Absent(why) => format!("nothing runs down: {why}"),
            Known::Unknown(why) => format!("what is left is unknown: {why}"),
        };
        return view! { <p class="small ink2 rwl">{told(&word)}</p> }.into_any();
    };
    let share = (*left).clamp(0, (*ttl).max(1)) as f64 * 100.0 / (*ttl).max(1) as f64;
    let hue = match *left {
        ..=0 => "critical",
        left if left.saturating_mul(3) < *ttl => "warning",
        _ => "healthy",
    };
    let text = human::duration(*left);
    let title = format!("{text} left of {} at the reading", human::period(*ttl));
    view! {
        <div class=format!("rwl rw {hue}")>
            <svg role="img"><title>{title}</title>
                <rect class="track" y="5" width="100%" height="6"></rect>
                <rect class="left" y="5" width=format!("{}%", human::measure(share)) height="6"></rect>
            </svg>
            <b>{text}</b>
        </div>
    }
    .into_any()
}

/// Everything that ends with it, the lock itself first.
pub(super) fn dies(id: &LockId, radius: &BlastRadius) -> AnyView {
    let own = view! {
        <tr><td class="res">{name(&id.resource.text())}</td><td class="ink2">"this lock"</td><td>{ends()}</td></tr>
    };
    let (first, rest) = radius.dies.split_at(radius.dies.len().min(DIES_SHOWN));
    let first = first.iter().map(casualty).collect_view();
    let nothing = radius
        .dies
        .is_empty()
        .then(|| view! { <p class="small ink2 pad">"Nothing else: this one holding and no more."</p> });
    let more = (!rest.is_empty()).then(|| {
        let word = format!("and {} more", human::count(rest.len() as u64));
        view! {
            <details class="more"><summary class="link small">{word}</summary>
                <table class="t kill"><thead class="sr">{kill_head()}</thead><tbody>{rest.iter().map(casualty).collect_view()}</tbody></table>
            </details>
        }
    });
    view! {
        <h3>"What dies with it"</h3>
        <table class="t kill"><thead>{kill_head()}</thead><tbody>{own}{first}</tbody></table>
        {more}
        {nothing}
    }
    .into_any()
}

fn kill_head() -> AnyView {
    view! { <tr><th scope="col">"what"</th><th scope="col">"kind"</th><th scope="col">"with the unlock"</th></tr> }.into_any()
}

fn casualty(one: &Casualty) -> AnyView {
    view! { <tr><td class="res">{name(&one.what)}</td><td class="ink2">{one.kind.word()}</td><td>{ends()}</td></tr> }.into_any()
}

fn ends() -> AnyView {
    view! { <span class="st critical small"><Shape name="x"/>"ends"</span> }.into_any()
}

pub(super) fn next_up(waiters: &[Waiter], radius: &BlastRadius, backend: &BackendName) -> AnyView {
    let order = match (&radius.next, waiters.len()) {
        (Some(next), _) => view! { <p class="small ink2 pad">"If it is released now, "{name(next.as_str())}" gets it."</p> }.into_any(),
        (None, 0) => view! { <p class="small ink2 pad">{format!("Nobody waits, as far as {backend} tells.")}</p> }.into_any(),
        (None, _) => view! { <p class="small ink2 pad">{format!("{backend} keeps no order: any of them may be next.")}</p> }.into_any(),
    };
    let rows = waiters.iter().take(WAITERS_SHOWN).map(|waiter| {
        let waits = match &waiter.waited_ms {
            Known::Known(ms) => view! { <span class="waiting st">{format!("waits {}", human::duration(*ms))}</span> }.into_any(),
            Known::Unknown(_) | Known::Absent(_) => view! { <span class="ink3">"waits, since when is unknown"</span> }.into_any(),
        };
        let lease = waiter.lease_remaining_ms.map(|ms| format!("its own lease has {} left", human::duration(ms)));
        view! { <li><span class="ink3">{waiter.position}</span><b>{name(waiter.owner_id.as_str())}</b>{waits}<span class="ink2 small">{lease}</span></li> }
    });
    let rows = (!waiters.is_empty()).then(|| {
        let rows = rows.collect_view();
        view! { <ol class="nextup">{rows}</ol> }
    });
    let more = waiters.len().saturating_sub(WAITERS_SHOWN);
    let more = (more > 0)
        .then(|| view! { <p class="small ink2">{format!("and {} more", human::count(more as u64))}</p> });
    view! { <h3>"Who gets it next"</h3>{rows}{more}{order} }.into_any()
}

/// Promise: no lock stops a holder that does not look.
pub(super) fn still_writes(seen: &Seen<'_>, radius: &BlastRadius, backend: &BackendName) -> AnyView {
    let who = match seen.owner_id {
        Known::Known(owner) => view! { "Can "{name(owner.as_str())}" still write?" }.into_any(),
        Known::Unknown(_) | Known::Absent(_) => view! { "Can its holder still write?" }.into_any(),
    };
    let dies = |kind| radius.dies.iter().any(|one| one.kind == kind);
    let first = if *backend == BackendName::builtin() {
        "It is told within a second, and until it stops it may. "
    } else if dies(CasualtyKind::Transaction) && !dies(CasualtyKind::Session) {
        "Not in this transaction: it is undone. In a new one it may. "
    } else if dies(CasualtyKind::Session) {
        "Not in this session: it ends, and what it has not committed is undone. In a new one it may. "
    } else {
        ""
    };
    // Sentences of the backend's own.
    let warnings = radius.warnings.iter().map(|warning| view! { {name(warning)}" " });
    let warnings = warnings.collect_view();
    let token = seen.fencing_token.known().map(|token| {
        format!("Where writes carry the token, {token} is refused once the next holder has written.")
    });
    view! { <p class="hurt"><b>{who}</b>" "{first}{warnings}{token}</p> }.into_any()
}
