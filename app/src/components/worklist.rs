//! What needs attention, worst first: one row group per lock, its second line says why.

use domain::escape::visible;
use domain::human;
use domain::known::Known;
use domain::lock::Lock;
use leptos::prelude::*;

use super::age::Held;
use super::resource_name::ResourceName;
use super::runway::Runway;
use super::state_badge::StateBadge;
use crate::links;

/// Rows keep their elements from one reading to the next: the key is the lock, its values are signals.
#[component]
pub fn Worklist(#[prop(into)] locks: Signal<Vec<Lock>>) -> impl IntoView {
    let ids = move || locks.with(|locks| locks.iter().map(|lock| lock.id.clone()).collect::<Vec<_>>());
    view! {
        <table class="worklist">
            <caption class="sr">"Locks that need attention, worst first"</caption>
            <thead>
                <tr>
                    <th scope="col" class="c-st">"state"</th>
                    <th scope="col" class="c-res">"resource, and why it is here"</th>
                    <th scope="col" class="c-own">"held by"</th>
                    <th scope="col" class="c-held num">"held for"</th>
                    <th scope="col" class="c-rw">"lease runway"</th>
                    <th scope="col" class="c-w num">"waiters"</th>
                </tr>
            </thead>
            <For
                each=ids
                key=|id| id.clone()
                children=move |id| {
                    let lock = Memo::new(move |before: Option<&Option<Lock>>| {
                        let now = locks.with(|locks| locks.iter().find(|lock| lock.id == id).cloned());
                        now.or_else(|| before.cloned().flatten())
                    });
                    move || lock.get().map(|lock| view! { <Row lock/> }.into_any())
                }
            />
        </table>
    }
    .into_any()
}

#[component]
fn Row(lock: Lock) -> impl IntoView {
    let why = lock.cause().to_owned();
    let rel = links::needs_browser(&lock.id.resource.text()).then_some("external");
    let stale = if lock.is_stale() { "is-stale" } else { "" };
    view! {
        <tbody class=stale>
            <tr class="row">
                <td class="c-st" rowspan="2"><StateBadge state=lock.state/></td>
                <td class="c-res">
                    <a class="row-link" href=links::lock(&lock) rel=rel>
                        <ResourceName name=lock.id.resource.text() cut=true/>
                    </a>
                </td>
                <td class="c-own">{owner(&lock)}</td>
                <td class="c-held num"><Held lock=lock.clone()/></td>
                <td class="c-rw"><Runway lock=lock.clone()/></td>
                <td class="c-w num">{waiters(&lock.waiter_count)}</td>
            </tr>
            <tr class="why">
                <td class="c-why" colspan="5">
                    <span class="at ink3">{lock.id.backend.to_string()}</span>
                    <bdi title=visible(&why).into_owned()>{visible(&why).into_owned()}</bdi>
                </td>
            </tr>
        </tbody>
    }
    .into_any()
}

fn owner(lock: &Lock) -> AnyView {
    match &lock.owner_id {
        Known::Known(owner) => {
            let name = visible(owner.as_str()).into_owned();
            let more = lock.owner_count.saturating_sub(1);
            let more = (more > 0).then(|| view! { <span class="ink3">{format!(" +{more}")}</span> });
            view! { <bdi title=name.clone()>{name.clone()}</bdi>{more} }.into_any()
        }
        Known::Unknown(why) => missing("unknown", why),
        Known::Absent(why) => missing("none", why),
    }
}

/// Waiters of one lock: none is quiet, some are blue, unknown says so.
pub fn waiters(count: &Known<u32>) -> AnyView {
    match count {
        Known::Known(0) => view! { <span class="ink3">"0"</span> }.into_any(),
        Known::Known(count) => {
            view! { <span class="waiting wn">{human::count(u64::from(*count))}</span> }.into_any()
        }
        Known::Unknown(why) => missing("unknown", why),
        Known::Absent(why) => missing("none", why),
    }
}

fn missing(word: &'static str, why: &str) -> AnyView {
    view! { <span class="ink3" title=why.to_owned()>{word}</span> }.into_any()
}
