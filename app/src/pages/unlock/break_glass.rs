//! Break-glass: the form for an unlock without a second approver, and the flag that stays until
//! its review.

use domain::time_format;
use domain::unlock::BreakGlass;
use leptos::prelude::*;

use super::parts::name;
use super::path;
use super::requirements::NameField;
use crate::components::reactive::changing;
use crate::components::state_badge::Shape;
use crate::format;
use crate::forms::console_form::{ConsoleForm, FormState};
use crate::forms::field::{SubmitButton, TextArea};
use crate::pages::unlock::data::UnlockStep;

/// Success leads to the step's URL without the key of this form, which shows the result.
pub(super) fn form(id: &str, wanted: String, receivers: u64, state: FormState) -> AnyView {
    let unlock_path = path(id);
    view! {
        <ConsoleForm class="type" action=format!("{unlock_path}/confirm") state>
            <p class="protection"><b>"You are about to act without a second approver. "</b>{notice_text(receivers)}" The unlock stays flagged in the audit log until another user has reviewed it."</p>
            <TextArea name="breakGlassReason" label="Reason to act without a second approver" help="A second reason, at least 10 characters, different from the first."/>
            <NameField wanted is_first=false/>
            <div class="do"><SubmitButton><Shape name="unlock"/>"Release (break-glass)"</SubmitButton></div>
            <p class="small"><a class="link" href=unlock_path>"Wait for a second approver instead"</a></p>
        </ConsoleForm>
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
#[component]
pub fn Flag(step: Signal<UnlockStep>, state: FormState) -> impl IntoView {
    let shown = Memo::new(move |_| {
        step.with(|step| {
            let flag = step.unlock.break_glass.clone()?;
            Some((flag, step.unlock.id.clone(), step.may_review))
        })
    });
    changing(move || {
        let (flag, id, may_review) = shown.get()?;
        Some(flag_view(&flag, &id, may_review, state))
    })
}

fn flag_view(flag: &BreakGlass, id: &str, may_review: bool, state: FormState) -> AnyView {
    if let Some(review) = &flag.review {
        return view! {
            <div class="notice refusal" role="status"><p>"Break-glass: "{name(&flag.reason)}</p><p class="ink2">"Reviewed by "{name(&review.by_name)}", "{time_format::dated(review.at)}</p></div>
        }
        .into_any();
    }
    let review = may_review.then(|| {
        view! {
            <ConsoleForm action=format!("{}/review", path(id)) stays=true state>
                <SubmitButton class="btn s">"Mark as reviewed"</SubmitButton>
            </ConsoleForm>
        }
        .into_any()
    });
    view! {
        <div class="notice warning refusal" role="status">
            <p><b>"Break-glass, not reviewed yet. "</b>"Second reason: "{name(&flag.reason)}</p>
            {review}
        </div>
    }
    .into_any()
}
