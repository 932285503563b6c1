//! Pending reviews: break-glass unlocks without a review, and unlocks with an unknown outcome.

use domain::escape::visible;
use leptos::context::Provider;
use leptos::prelude::*;

use crate::components::reactive::changing;
use crate::components::relative_time::age;
use crate::components::resource_name::ResourceName;
use crate::components::state_badge::Shape;
use crate::format;
use crate::forms::console_form::{ConsoleForm, FormAlert, FormState};
use crate::forms::field::SubmitButton;
use crate::links;
use crate::pages::audit::data::{AuditData, PendingKind, PendingReview, ReviewRight};

#[component]
pub fn PendingReviews(data: Signal<AuditData>) -> impl IntoView {
    let pending = Memo::new(move |_| data.with(|data| data.pending.clone()));
    changing(move || {
        let now = data.with_untracked(|data| data.now);
        pending.with(|pending| list(pending, now))
    })
}

fn list(pending: &[PendingReview], now: i64) -> AnyView {
    if pending.is_empty() {
        return ().into_any();
    }
    let break_glass = pending
        .iter()
        .filter(|unlock| unlock.kind != PendingKind::OutcomeUnknown)
        .count() as u64;
    let unknown = pending.len() as u64 - break_glass;
    let parts = [
        (
            break_glass,
            "break-glass unlock awaits review",
            "break-glass unlocks await review",
        ),
        (unknown, "has an unknown outcome", "have an unknown outcome"),
    ];
    let parts = parts.into_iter().filter(|(count, ..)| *count > 0);
    let title: Vec<String> = parts
        .map(|(count, singular, plural)| format::counted(count, singular, plural))
        .collect();
    let items = pending.iter().map(|unlock| item(unlock, now));
    view! {
        <section class="sec look-at" aria-labelledby="look-at">
            <header><h2 id="look-at">{title.join(", ")}</h2></header>
            <ul>{items.collect_view()}</ul>
        </section>
    }
    .into_any()
}

fn item(unlock: &PendingReview, now: i64) -> AnyView {
    let steps = links::with_query("/audit", [("unlockId", unlock.unlock_id.as_str())]);
    // The refusal of a review is shown to users without its form, too.
    let state = FormState::of_action(&review_action(&unlock.unlock_id));
    let by = visible(&unlock.by).into_owned();
    let (class, shape, what) = match &unlock.kind {
        PendingKind::OutcomeUnknown => (
            "is-stale",
            view! { <span class="st blind unknown"><Shape name="unknown"/>"outcome unknown"</span> }.into_any(),
            view! { <p class="ink2">"The backend did not answer; the lock is read again until the outcome is known."</p> }.into_any(),
        ),
        PendingKind::BreakGlass { reason, .. } => (
            "",
            view! { <span class="st warning"><Shape name="not_renewing"/>"break-glass"</span> }.into_any(),
            view! { <p><span class="ink2">"Reason: "</span><bdi>{visible(reason).into_owned()}</bdi></p> }.into_any(),
        ),
    };
    view! {
        <li class=class>
            <div class="head">{shape}<b><bdi>{by}</bdi></b><span class="ink2">" on "{visible(&unlock.backend).into_owned()}", "{age(Some(unlock.at), now, "")}</span></div>
            <p><ResourceName name=unlock.resource.clone()/></p>
            {what}
            <Provider value=state><FormAlert/></Provider>
            <div class="acts"><a class="btn s" href=steps>"Show steps"</a>{review(unlock, state)}</div>
        </li>
    }
    .into_any()
}

fn review(unlock: &PendingReview, state: FormState) -> AnyView {
    let PendingKind::BreakGlass { review, .. } = &unlock.kind else {
        return ().into_any();
    };
    match review {
        ReviewRight::May => form(&unlock.unlock_id, state),
        ReviewRight::Own => {
            view! { <span class="small ink2">"Another user must review your unlock."</span> }.into_any()
        }
        ReviewRight::Others => {
            view! { <span class="small ink2">"Only an approver of this lock may review it."</span> }
                .into_any()
        }
    }
}

pub(super) fn review_action(unlock_id: &str) -> String {
    format!("/audit/unlocks/{unlock_id}/review")
}

/// The same operation as the API's.
pub(super) fn form(unlock_id: &str, state: FormState) -> AnyView {
    view! {
        <ConsoleForm action=review_action(unlock_id) stays=true state>
            <SubmitButton class="btn s solid">"Mark as reviewed"</SubmitButton>
        </ConsoleForm>
    }
    .into_any()
}
