//! Sections of the lock page: waiters, blockers, next steps, related locks.

use domain::escape::visible;
use domain::lock_detail::{Fresh, LockDetail};
use domain::next_steps;
use domain::observation::Waiter;
use domain::reported::Reported;
use leptos::prelude::*;

use crate::components::blocker_tree::BlockerTree;
use crate::components::elapsed::{Elapsing, RunningDown};
use crate::components::reactive::changing;
use crate::format;

/// Rows shown of a list; the rest is counted.
const WAITERS_SHOWN: usize = 20;

/// The fresh reading, or why it is missing.
fn fresh(detail: &LockDetail) -> Result<&Fresh, String> {
    match &detail.fresh {
        Reported::Value(fresh) => Ok(fresh),
        Reported::NotApplicable(_) => Err("None: not held.".to_owned()),
        Reported::Unknown(why) => Err(format!("Unknown: {}.", format::prose(why).trim_end_matches('.'))),
    }
}

#[component]
pub fn Waiters(detail: Signal<LockDetail>) -> impl IntoView {
    let note = move || {
        detail.with(|detail| match &detail.lock.waiter_count {
            _ if detail.is_gone() => None,
            Reported::Value(0) => None,
            Reported::Value(count) if detail.lock.kind.keeps_order() => {
                Some(format!("{}, in order", format::count(u64::from(*count))))
            }
            Reported::Value(count) => Some(format::count(u64::from(*count))),
            Reported::Unknown(_) | Reported::NotApplicable(_) => None,
        })
    };
    view! {
        <section class="sec" aria-labelledby="waiters-head">
            <header><h2 id="waiters-head">"Waiters"</h2><span class="note">{changing(note)}</span></header>
            {move || detail.with(waiters)}
        </section>
    }
    .into_any()
}

fn waiters(detail: &LockDetail) -> AnyView {
    let list = match fresh(detail) {
        Ok(fresh) => &fresh.waiters,
        Err(why) => return view! { <p class="pad">{why}</p> }.into_any(),
    };
    if list.is_empty() {
        let text = match &detail.lock.waiter_count {
            Reported::Value(0) => "No waiters.".to_owned(),
            Reported::Value(count) => format!(
                "{} waiting; owners not reported.",
                format::count(u64::from(*count))
            ),
            Reported::Unknown(why) | Reported::NotApplicable(why) => {
                format!("Unknown: {}.", why.trim_end_matches('.'))
            }
        };
        return view! { <p class="pad">{text}</p> }.into_any();
    }
    let next = detail.next_waiter().map(|waiter| {
        view! { <p class="pad small">"If it is released now, "<bdi>{visible(waiter.owner_id.as_str()).into_owned()}</bdi>" gets it next."</p> }.into_any()
    });
    let more = list.len().saturating_sub(WAITERS_SHOWN);
    let more = (more > 0).then(|| {
        view! { <p class="pad small">{format!("and {} more", format::count(more as u64))}</p> }.into_any()
    });
    let rows = list
        .iter()
        .take(WAITERS_SHOWN)
        .map(|waiter| view! { <WaiterRow waiter=waiter.clone()/> }.into_any())
        .collect_view();
    view! {
        <table class="t wt">
            <thead>
                <tr>
                    <th scope="col">"#"</th>
                    <th scope="col">"owner"</th>
                    <th scope="col" class="num">"waits"</th>
                    <th scope="col" class="num">"its lease"</th>
                </tr>
            </thead>
            <tbody>{rows}</tbody>
        </table>
        {more}
        {next}
    }
    .into_any()
}

#[component]
fn WaiterRow(waiter: Waiter) -> impl IntoView {
    let owner = visible(waiter.owner_id.as_str()).into_owned();
    let waits = match waiter.waited_ms {
        Reported::Value(ms) => view! { <span class="waiting wn"><Elapsing ms/></span> }.into_any(),
        Reported::Unknown(why) | Reported::NotApplicable(why) => {
            view! { <span class="ink3" title=why.to_string()>"unknown"</span> }.into_any()
        }
    };
    let lease = match waiter.lease_remaining_ms {
        Some(ms) => view! { <RunningDown ms/>" left" }.into_any(),
        None => view! { <span class="ink3">"not reported"</span> }.into_any(),
    };
    view! {
        <tr>
            <td class="ink3">{waiter.position}</td>
            <td class="own"><bdi title=owner.clone()>{owner.clone()}</bdi></td>
            <td class="num">{waits}</td>
            <td class="num ink2">{lease}</td>
        </tr>
    }
    .into_any()
}

#[component]
pub fn Blockers(detail: Signal<LockDetail>) -> impl IntoView {
    let blockers = Memo::new(move |_| {
        detail.with(|detail| {
            detail
                .fresh
                .known()
                .map(|fresh| fresh.blockers.clone())
                .unwrap_or_default()
        })
    });
    changing(move || {
        let blockers = blockers.get();
        (!blockers.is_empty()).then(|| {
            view! {
                <section class="sec" aria-labelledby="blockers-head">
                    <header>
                        <h2 id="blockers-head">"Blocker tree"</h2>
                        <span class="note">"holder first, its waiters below"</span>
                    </header>
                    <BlockerTree blockers/>
                </section>
            }
            .into_any()
        })
    })
}

#[component]
pub fn NextSteps(detail: Signal<LockDetail>) -> impl IntoView {
    let steps = Memo::new(move |_| {
        let split = |step: next_steps::NextStep| (step.head, step.body);
        detail.with(|detail| {
            next_steps::next_steps(detail)
                .into_iter()
                .map(split)
                .collect::<Vec<_>>()
        })
    });
    let items = move || {
        steps
            .get()
            .into_iter()
            .map(|(head, body)| {
                view! { <li><b>{head}</b>" "{format::unbroken(&body).into_owned()}</li> }.into_any()
            })
            .collect_view()
    };
    view! {
        <section class="sec next" aria-labelledby="next-head">
            <header><h2 id="next-head">"Next steps"</h2></header>
            <ol>{changing(items)}</ol>
        </section>
    }
    .into_any()
}

#[component]
pub fn RelatedLocks(detail: Signal<LockDetail>) -> impl IntoView {
    let lines = move || {
        detail.with(|detail| match fresh(detail) {
            Err(_) if detail.is_gone() => view! { <p class="pad">"None: not held."</p> }.into_any(),
            Err(why) => view! { <p class="pad">{why}</p> }.into_any(),
            Ok(fresh) if fresh.related_locks.is_empty() => {
                view! { <p class="pad">"None reported by this backend."</p> }.into_any()
            }
            Ok(fresh) => {
                let lines = fresh.related_locks.iter();
                let lines = lines
                    .map(|line| view! { <li><bdi>{format::prose(line)}</bdi></li> }.into_any())
                    .collect_view();
                view! { <ul class="related">{lines}</ul> }.into_any()
            }
        })
    };
    view! {
        <section class="sec" aria-labelledby="related-head">
            <header>
                <h2 id="related-head">"Related locks"</h2>
                <span class="note">"on the same lease or session"</span>
            </header>
            {changing(lines)}
        </section>
    }
    .into_any()
}
