//! What somebody must look at: unlocks that were done alone and that nobody reviewed, and acts whose outcome is unknown.

use domain::escape::visible;
use domain::human;
use leptos::prelude::*;

use crate::components::resource_name::ResourceName;
use crate::components::state_badge::Shape;
use crate::forms::settings::ago;
use crate::links;

#[derive(Debug, Clone)]
pub struct Pending {
    pub unlock_id: String,
    pub by: String,
    pub backend: String,
    pub resource: String,
    /// Milliseconds since 1970.
    pub at: i64,
    pub kind: PendingKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PendingKind {
    OutcomeUnknown,
    Alone { reason: String, review: Review },
}

/// Whether who looks may say that they have looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Review {
    May,
    /// It was them.
    Own,
    /// Without the right.
    Others,
}

pub(super) fn attention(pending: &[Pending], now: i64) -> AnyView {
    if pending.is_empty() {
        return ().into_any();
    }
    let alone = pending
        .iter()
        .filter(|one| one.kind != PendingKind::OutcomeUnknown)
        .count() as u64;
    let unknown = pending.len() as u64 - alone;
    let told = [
        (
            alone,
            "forced unlock was done alone and not reviewed",
            "forced unlocks were done alone and not reviewed",
        ),
        (unknown, "has an unknown outcome", "have an unknown outcome"),
    ];
    let told = told.into_iter().filter(|(count, ..)| *count > 0);
    let title: Vec<String> = told
        .map(|(count, one, many)| human::counted(count, one, many))
        .collect();
    let items = pending.iter().map(|one| item(one, now));
    view! {
        <section class="sec look-at" aria-labelledby="look-at">
            <header><h2 id="look-at">{title.join(", ")}</h2></header>
            <ul>{items.collect_view()}</ul>
        </section>
    }
    .into_any()
}

fn item(one: &Pending, now: i64) -> AnyView {
    let steps = links::with_query("/audit", [("unlockId", one.unlock_id.as_str())]);
    let by = visible(&one.by).into_owned();
    let (class, shape, what) = match &one.kind {
        PendingKind::OutcomeUnknown => (
            "is-stale",
            view! { <span class="st blind unknown"><Shape name="unknown"/>"outcome unknown"</span> }.into_any(),
            view! { <p class="ink2">"No answer came to the act; the lock is read again until it is known."</p> }.into_any(),
        ),
        PendingKind::Alone { reason, .. } => (
            "",
            view! { <span class="st warning"><Shape name="not_renewing"/>"done alone"</span> }.into_any(),
            view! { <p><span class="ink2">"Because: "</span><bdi>{visible(reason).into_owned()}</bdi></p> }.into_any(),
        ),
    };
    view! {
        <li class=class>
            <div class="head">{shape}<b><bdi>{by}</bdi></b><span class="ink2">" on "{visible(&one.backend).into_owned()}", "{ago(Some(one.at), now, "")}</span></div>
            <p><ResourceName name=one.resource.clone()/></p>
            {what}
            <div class="acts"><a class="btn s" href=steps>"Every step"</a>{review(one)}</div>
        </li>
    }
    .into_any()
}

fn review(one: &Pending) -> AnyView {
    let PendingKind::Alone { review, .. } = &one.kind else {
        return ().into_any();
    };
    match review {
        Review::May => form(&one.unlock_id),
        Review::Own => {
            view! { <span class="small ink2">"Somebody else must review what you did alone."</span> }
                .into_any()
        }
        Review::Others => {
            view! { <span class="small ink2">"Whoever may approve here reviews it."</span> }.into_any()
        }
    }
}

/// Posts to the same act as the API's.
pub(super) fn form(unlock_id: &str) -> AnyView {
    view! {
        <form method="post" action=format!("/audit/unlocks/{unlock_id}/review")>
            <button class="btn s solid" r#type="submit">"I have looked: reviewed"</button>
        </form>
    }
    .into_any()
}
