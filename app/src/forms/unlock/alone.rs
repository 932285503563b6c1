//! Acting alone where a second person is wanted (break-glass): its form, and the flag that stays until it is reviewed.

use domain::{human, moment};
use leptos::prelude::*;

use super::parts::name;
use super::wanted::name_field;
use super::{Step, path};
use crate::components::state_badge::Shape;
use crate::forms::field::Area;

pub(super) fn form(step: &Step) -> AnyView {
    let here = path(&step.unlock.id);
    let act = format!("{here}/confirm");
    let reason = Area {
        name: "breakGlassReason",
        label: "Why nobody else can be waited for",
        value: step.typed.second_reason.clone(),
        help: Some("A second reason, at least 10 characters, other than the first."),
        fault: step.typed.second_fault.clone(),
    };
    view! {
        <form class="type" method="post" action=act>
            <p class="tier"><b>"You are about to act alone. "</b>{told(step.receivers)}" It stays flagged in the record until somebody else has reviewed it."</p>
            {reason.view()}
            {name_field(step)}
            <div class="do"><button class="btn solid" r#type="submit"><Shape name="unlock"/>"Release alone"</button></div>
            <p class="small"><a class="link" href=here>"Wait for a second person instead"</a></p>
        </form>
    }
    .into_any()
}

/// Who hears of it, before it is done.
fn told(receivers: u64) -> String {
    if receivers == 0 {
        return "Nobody will be told: no receiver is configured.".to_owned();
    }
    let receivers = human::counted(receivers, "receiver", "receivers");
    format!("Everyone is told at once, through {receivers}.")
}

/// At the top, for as long as nobody has looked at it; below it, for whoever may.
pub(super) fn flag(step: &Step) -> AnyView {
    let Some(alone) = &step.unlock.break_glass else {
        return ().into_any();
    };
    if let Some(review) = &alone.review {
        return view! {
            <div class="notice refusal" role="status"><p>"Done alone (break-glass): "{name(&alone.reason)}</p><p class="ink2">"Reviewed by "{name(&review.by_name)}", "{moment::dated(review.at)}</p></div>
        }
        .into_any();
    }
    let review = step.may_review.then(|| {
        view! { <form method="post" action=format!("{}/review", path(&step.unlock.id))><button class="btn s" r#type="submit">"I have reviewed it"</button></form> }
    });
    view! {
        <div class="notice warning refusal" role="status">
            <p><b>"Done alone (break-glass), and not reviewed yet. "</b>"Second reason: "{name(&alone.reason)}</p>
            {review}
        </div>
    }
    .into_any()
}
