//! Pending reviews: break-glass unlocks without a review, and unlocks with an unknown outcome.

use domain::escape::visible;
use domain::format;
use leptos::prelude::*;

use crate::components::resource_name::ResourceName;
use crate::components::state_badge::Shape;
use crate::links;
use crate::pages::settings::age as ago;

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

/// Whether the user may review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Review {
    May,
    /// The user's own unlock.
    Own,
    /// No permission.
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
            "break-glass unlock awaits review",
            "break-glass unlocks await review",
        ),
        (unknown, "has an unknown outcome", "have an unknown outcome"),
    ];
    let told = told.into_iter().filter(|(count, ..)| *count > 0);
    let title: Vec<String> = told
        .map(|(count, one, many)| format::counted(count, one, many))
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
            view! { <p class="ink2">"The backend did not answer; the lock is read again until the outcome is known."</p> }.into_any(),
        ),
        PendingKind::Alone { reason, .. } => (
            "",
            view! { <span class="st warning"><Shape name="not_renewing"/>"break-glass"</span> }.into_any(),
            view! { <p><span class="ink2">"Reason: "</span><bdi>{visible(reason).into_owned()}</bdi></p> }.into_any(),
        ),
    };
    view! {
        <li class=class>
            <div class="head">{shape}<b><bdi>{by}</bdi></b><span class="ink2">" on "{visible(&one.backend).into_owned()}", "{ago(Some(one.at), now, "")}</span></div>
            <p><ResourceName name=one.resource.clone()/></p>
            {what}
            <div class="acts"><a class="btn s" href=steps>"Show steps"</a>{review(one)}</div>
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
            view! { <span class="small ink2">"Another user must review your unlock."</span> }.into_any()
        }
        Review::Others => {
            view! { <span class="small ink2">"An approver of this lock reviews it."</span> }.into_any()
        }
    }
}

/// Posts to the same operation as the API's.
pub(super) fn form(unlock_id: &str) -> AnyView {
    view! {
        <form method="post" action=format!("/audit/unlocks/{unlock_id}/review")>
            <button class="btn s solid" r#type="submit">"Mark as reviewed"</button>
        </form>
    }
    .into_any()
}
