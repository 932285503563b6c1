//! Break-glass: the form for an unlock without a second approver, and the flag that stays until
//! its review.

use domain::{format, time_format};
use leptos::prelude::*;

use super::layout::name;
use super::requirements::name_field;
use super::{Step, path};
use crate::components::state_badge::Shape;
use crate::server_pages::field::Area;

pub(super) fn form(step: &Step) -> AnyView {
    let here = path(&step.unlock.id);
    let act = format!("{here}/confirm");
    let reason = Area {
        name: "breakGlassReason",
        label: "Reason to act without a second approver",
        value: step.typed.second_reason.clone(),
        help: Some("A second reason, at least 10 characters, other than the first."),
        fault: step.typed.second_fault.clone(),
    };
    view! {
        <form class="type" method="post" action=act>
            <p class="protection"><b>"You are about to act without a second approver. "</b>{notice_text(step.receivers)}" The unlock stays flagged in the audit log until another user has reviewed it."</p>
            {reason.view()}
            {name_field(step)}
            <div class="do"><button class="btn solid" r#type="submit"><Shape name="unlock"/>"Release (break-glass)"</button></div>
            <p class="small"><a class="link" href=here>"Wait for a second approver instead"</a></p>
        </form>
    }
    .into_any()
}

/// Who is notified, shown before confirmation.
fn notice_text(receivers: u64) -> String {
    if receivers == 0 {
        return "No notification: no receiver is configured.".to_owned();
    }
    let receivers = format::counted(receivers, "receiver", "receivers");
    format!("Notifications go out at once, through {receivers}.")
}

/// Flag at the top until the review, with the review form for users who may review.
pub(super) fn flag(step: &Step) -> AnyView {
    let Some(alone) = &step.unlock.break_glass else {
        return ().into_any();
    };
    if let Some(review) = &alone.review {
        return view! {
            <div class="notice refusal" role="status"><p>"Break-glass: "{name(&alone.reason)}</p><p class="ink2">"Reviewed by "{name(&review.by_name)}", "{time_format::dated(review.at)}</p></div>
        }
        .into_any();
    }
    let review = step.may_review.then(|| {
        view! { <form method="post" action=format!("{}/review", path(&step.unlock.id))><button class="btn s" r#type="submit">"Mark as reviewed"</button></form> }
    });
    view! {
        <div class="notice warning refusal" role="status">
            <p><b>"Break-glass, not reviewed yet. "</b>"Second reason: "{name(&alone.reason)}</p>
            {review}
        </div>
    }
    .into_any()
}
