//! What must be known before anything below is believed: that it is gone, old, or could not be read afresh.

use domain::backend::BackendStatus;
use domain::detail::LockDetail;
use domain::escape::visible;
use domain::known::Known;
use leptos::prelude::*;

use crate::components::age::Age;
use crate::components::changing::changing;
use crate::components::state_badge::Shape;

#[component]
pub fn Notices(detail: Signal<LockDetail>) -> impl IntoView {
    changing(move || detail.with(notice))
}

fn notice(detail: &LockDetail) -> Option<AnyView> {
    if detail.fresh.is_absent() {
        return Some(gone(detail));
    }
    if detail.backend_status.blinds_rows() {
        return Some(blind(detail));
    }
    match &detail.fresh {
        Known::Unknown(why) => Some(not_fresh(detail, why)),
        Known::Known(_) | Known::Absent(_) => None,
    }
}

fn gone(detail: &LockDetail) -> AnyView {
    let owner = detail
        .lock
        .owner_id
        .known()
        .map(|owner| view! { ", held by "<bdi>{visible(owner.as_str()).into_owned()}</bdi> }.into_any());
    let why = detail.fresh.why().unwrap_or("nobody holds it");
    let why = visible(why.trim_end_matches('.')).into_owned();
    view! {
        <p class="notice" role="status">
            <Shape name="ok"/>
            <span><b>"Nobody holds it: "<bdi>{why}</bdi>"."</b>" Last observed "<Age ms=detail.lock.age_ms/>" ago"{owner}"."</span>
        </p>
    }
    .into_any()
}

fn blind(detail: &LockDetail) -> AnyView {
    let name = detail.lock.id.backend.to_string();
    let verb = if detail.backend_status == BackendStatus::Down {
        " is down."
    } else {
        " does not answer."
    };
    let why = detail
        .backend_fault
        .as_ref()
        .map(|fault| view! { " "<bdi>{visible(&fault.message).into_owned()}</bdi>"." }.into_any());
    view! {
        <p class="notice blind is-stale" role="status">
            <Shape name="stale"/>
            <span><b>{name.clone()}{verb}</b>" What stands here was true "<Age ms=detail.lock.age_ms/>" ago and may not be now."{why}</span>
            <a class="link" href=format!("/backends#{name}")>"Why, and what to do"</a>
        </p>
    }
    .into_any()
}

fn not_fresh(detail: &LockDetail, why: &str) -> AnyView {
    view! {
        <p class="notice warning" role="status">
            <Shape name="near_expiry"/>
            <span><b>"It could not be read just now."</b>" What stands here was observed "<Age ms=detail.lock.age_ms/>" ago. "<bdi>{visible(why).into_owned()}</bdi></span>
        </p>
    }
    .into_any()
}
