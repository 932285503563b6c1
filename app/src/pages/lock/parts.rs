//! Who waits, who blocks whom, what to do next, and what else hangs on it.

use domain::advice;
use domain::detail::{Fresh, LockDetail};
use domain::escape::visible;
use domain::human;
use domain::known::Known;
use domain::observation::Waiter;
use leptos::prelude::*;

use crate::components::age::{Elapsing, RunningDown};
use crate::components::blocker_tree::BlockerTree;
use crate::components::changing::changing;

/// Lines shown of a list; the rest is counted.
const WAITERS_SHOWN: usize = 20;

/// What was read just now, or the sentence for why it was not.
fn fresh(detail: &LockDetail) -> Result<&Fresh, String> {
    match &detail.fresh {
        Known::Known(fresh) => Ok(fresh),
        Known::Absent(_) => Err("Nobody: it is not held.".to_owned()),
        Known::Unknown(why) => Err(format!("Unknown: {}.", visible(why).trim_end_matches('.'))),
    }
}

#[component]
pub fn Waiters(detail: Signal<LockDetail>) -> impl IntoView {
    let note = move || {
        detail.with(|detail| match &detail.lock.waiter_count {
            _ if detail.is_gone() => None,
            Known::Known(0) => None,
            Known::Known(count) if detail.lock.kind.keeps_order() => {
                Some(format!("{}, in order", human::count(u64::from(*count))))
            }
            Known::Known(count) => Some(human::count(u64::from(*count))),
            Known::Unknown(_) | Known::Absent(_) => None,
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
        let words = match &detail.lock.waiter_count {
            Known::Known(0) => "Nobody waits.".to_owned(),
            Known::Known(count) => format!(
                "{} wait; who they are is not told.",
                human::count(u64::from(*count))
            ),
            Known::Unknown(why) | Known::Absent(why) => format!("Unknown: {}.", why.trim_end_matches('.')),
        };
        return view! { <p class="pad">{words}</p> }.into_any();
    }
    let next = detail.next_in_line().map(|waiter| {
        view! { <p class="pad small">"If it is released now, "<bdi>{visible(waiter.owner_id.as_str()).into_owned()}</bdi>" gets it next."</p> }.into_any()
    });
    let more = list.len().saturating_sub(WAITERS_SHOWN);
    let more = (more > 0).then(|| {
        view! { <p class="pad small">{format!("and {} more", human::count(more as u64))}</p> }.into_any()
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
        Known::Known(ms) => view! { <span class="waiting wn"><Elapsing ms/></span> }.into_any(),
        Known::Unknown(why) | Known::Absent(why) => {
            view! { <span class="ink3" title=why.to_string()>"unknown"</span> }.into_any()
        }
    };
    let lease = match waiter.lease_remaining_ms {
        Some(ms) => view! { <RunningDown ms/>" left" }.into_any(),
        None => view! { <span class="ink3">"none told"</span> }.into_any(),
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
                        <h2 id="blockers-head">"Who blocks whom"</h2>
                        <span class="note">"the first holds, what hangs below waits for it"</span>
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
        let split = |step: advice::Step| (step.head, step.body);
        detail.with(|detail| {
            advice::next_steps(detail)
                .into_iter()
                .map(split)
                .collect::<Vec<_>>()
        })
    });
    let items = move || {
        steps
            .get()
            .into_iter()
            .map(|(head, body)| view! { <li><b>{head}</b>" "{body}</li> }.into_any())
            .collect_view()
    };
    view! {
        <section class="sec next" aria-labelledby="next-head">
            <header><h2 id="next-head">"What to do next"</h2></header>
            <ol>{changing(items)}</ol>
        </section>
    }
    .into_any()
}

#[component]
pub fn Fate(detail: Signal<LockDetail>) -> impl IntoView {
    let lines = move || {
        detail.with(|detail| match fresh(detail) {
            Err(_) if detail.is_gone() => view! { <p class="pad">"Nothing: it is not held."</p> }.into_any(),
            Err(why) => view! { <p class="pad">{why}</p> }.into_any(),
            Ok(fresh) if fresh.shares_fate_with.is_empty() => {
                view! { <p class="pad">"Nothing else that this backend shows."</p> }.into_any()
            }
            Ok(fresh) => {
                let lines = fresh.shares_fate_with.iter();
                let lines = lines
                    .map(|line| view! { <li><bdi>{visible(line).into_owned()}</bdi></li> }.into_any())
                    .collect_view();
                view! { <ul class="fate">{lines}</ul> }.into_any()
            }
        })
    };
    view! {
        <section class="sec" aria-labelledby="fate-head">
            <header>
                <h2 id="fate-head">"What else hangs on it"</h2>
                <span class="note">"on the same lease or session"</span>
            </header>
            {changing(lines)}
        </section>
    }
    .into_any()
}
