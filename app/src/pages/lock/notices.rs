//! Notices above the lock: released, old data, or not read for this request.
//!
//! Only their first sentence is a live region: the ages behind it change every second.

use domain::backend::BackendStatus;
use domain::escape::visible;
use domain::lock_detail::LockDetail;
use domain::reported::Reported;
use leptos::prelude::*;

use crate::components::elapsed::Age;
use crate::components::reactive::changing;
use crate::components::state_badge::Shape;
use crate::format;

#[component]
pub fn Notices(detail: Signal<LockDetail>) -> impl IntoView {
    changing(move || detail.with(notice))
}

fn notice(detail: &LockDetail) -> Option<AnyView> {
    if detail.fresh.is_absent() {
        return Some(not_held_notice(detail));
    }
    if detail.backend_status.blinds_rows() {
        return Some(unobserved_notice(detail));
    }
    match &detail.fresh {
        Reported::Unknown(why) => Some(not_fresh(detail, why)),
        Reported::Value(_) | Reported::NotApplicable(_) => None,
    }
}

fn not_held_notice(detail: &LockDetail) -> AnyView {
    let owner = detail
        .lock
        .owner_id
        .known()
        .map(|owner| view! { ", held by "<bdi>{visible(owner.as_str()).into_owned()}</bdi> }.into_any());
    let why = detail.fresh.why().unwrap_or("the lock is free");
    let why = format::prose(why.trim_end_matches('.'));
    view! {
        <p class="notice">
            <Shape name="ok"/>
            <span><b role="status">"Not held: "<bdi>{why}</bdi>"."</b>" Last observed "<Age ms=detail.lock.age_ms/>" ago"{owner}"."</span>
        </p>
    }
    .into_any()
}

fn unobserved_notice(detail: &LockDetail) -> AnyView {
    let name = detail.lock.id.backend.to_string();
    let verb = if detail.backend_status == BackendStatus::Down {
        " is down."
    } else {
        " does not answer."
    };
    let why = detail
        .backend_fault
        .as_ref()
        .map(|fault| view! { " "<bdi>{format::prose(&fault.message)}</bdi>"." }.into_any());
    view! {
        <p class="notice blind is-stale">
            <Shape name="stale"/>
            <span><b role="status">{name.clone()}{verb}</b>" The data was read "<Age ms=detail.lock.age_ms/>" ago and may be out of date."{why}</span>
            <a class="link" href=format!("/backends#{name}")>"Cause and remedy"</a>
        </p>
    }
    .into_any()
}

fn not_fresh(detail: &LockDetail, why: &str) -> AnyView {
    let why = format::prose(why.trim_end_matches('.'));
    view! {
        <p class="notice warning">
            <Shape name="near_expiry"/>
            <span><b role="status">"The last read failed: "<bdi>{why}</bdi>"."</b>" The data was read "<Age ms=detail.lock.age_ms/>" ago."</span>
        </p>
    }
    .into_any()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use domain::backend::BackendStatus::{Down, Live};

    use super::*;
    use crate::charts::tests::html;
    use crate::pages::locks::row_buffer::tests::lock;

    #[test]
    fn no_age_is_in_a_live_region() {
        // Released, a backend that is down, and a failed read: each with an age that counts up.
        let notices = [
            (Live, Reported::absent("free")),
            (Down, Reported::unknown("down")),
            (Live, Reported::unknown("timeout")),
        ];
        for (backend_status, fresh) in notices {
            let detail = LockDetail {
                lock: lock("a", "w1"),
                backend_status,
                backend_fault: None,
                no_unlock: None,
                fresh,
                seen: Vec::new(),
                past: None,
                charts: None,
            };
            let html = html(move || view! { <Notices detail=Signal::stored(detail.clone())/> }.into_any());
            let (_, live_region) = html.split_once("role=\"status\"").unwrap();
            let (announced, rest) = live_region.split_once("</b>").unwrap();
            assert!(!announced.contains(" ago") && rest.contains(" ago"), "{html}");
        }
    }
}
