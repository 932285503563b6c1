//! Requirements before the release: of the requesting user, and of a second approver.

use domain::format;
use domain::unlock::to_type;
use leptos::prelude::*;

use super::layout::{name, notice, time};
use super::{Proof, Step, break_glass, path};
use crate::components::state_badge::Shape;
use crate::server_pages::field::{Field, alert};

pub(super) fn of_owner(step: &Step) -> AnyView {
    if let Some(why) = &step.hindrance {
        return view! { <p class="go"><b>"Not now: "</b>{notice(why)}</p> }.into_any();
    }
    if !step.is_protected() {
        return type_the_name(step);
    }
    let why = step.protection_reason.as_ref().map(ToString::to_string);
    let is_proved = matches!(step.proof, Proof::Fresh(_));
    let next = match (is_proved, step.is_alone, &step.unapproved) {
        (false, ..) => prove(step),
        (true, true, _) => break_glass::form(step),
        (true, false, None) => type_the_name(step),
        (true, false, Some(_)) => waiting(step),
    };
    view! {
        <h3>"Second approver "<span class="small ink3">{why}</span></h3>
        <ol class="appr">{proof_line(step)}{approval_line(step)}</ol>
        {next}
    }
    .into_any()
}

pub(super) fn of_others(step: &Step) -> AnyView {
    let by = &step.unlock.by_name;
    if step.may_approve {
        let action = format!("{}/approve", path(&step.unlock.id));
        if !matches!(step.proof, Proof::Fresh(_)) {
            let prove = crate::links::with_query("/prove", [("next", path(&step.unlock.id))]);
            return view! {
                <h3>"Your approval is requested"</h3>
                <p class="ink2">"An approval needs authentication within the last 15 minutes."</p>
                <div class="do"><a class="btn solid" href=prove>"Authenticate again"</a></div>
                <p class="small ink2">"You return here afterwards."</p>
            }
            .into_any();
        }
        return view! {
            <h3>"Your approval is requested"</h3>
            <p class="ink2">"You approve that "{name(by)}" releases exactly this holding and everything listed with it. Both names go to the audit log."</p>
            <form method="post" action=action><div class="do"><button class="btn solid" r#type="submit">"Approve"</button></div></form>
            <p class="small ink2">"To refuse, close this page; the intent then expires."</p>
        }
        .into_any();
    }
    let approved = step.unlock.approval.as_ref().map(|approval| {
        view! { <p class="st healthy quiet"><Shape name="ok"/><span>{name(&approval.by_name)}" approved it at "{time(approval.at)}</span></p> }
    });
    let refused = step.refused_as_second.as_ref().map(|why| {
        view! { <p class="go"><b>"You cannot approve this: "</b>{notice(why)}</p> }
    });
    view! { <p class="go">"Only "{name(by)}" can confirm this intent."</p>{refused}{approved} }.into_any()
}

fn proof_line(step: &Step) -> AnyView {
    match step.proof {
        Proof::Fresh(ago) => line(
            "ok",
            "healthy",
            "Authenticated",
            format!("{} ago; valid for 15 m", format::age(ago)),
        ),
        _ => line(
            "pending",
            "blind",
            "Authenticate again",
            "last more than 15 m ago".to_owned(),
        ),
    }
}

fn approval_line(step: &Step) -> AnyView {
    match (&step.unlock.approval, &step.unapproved) {
        (Some(approval), None) => line(
            "ok",
            "healthy",
            "Approved by a second approver",
            format!(
                "{}, at {}",
                domain::escape::visible(&approval.by_name),
                domain::time_format::timed(approval.at)
            ),
        ),
        (Some(_), Some(why)) => line("x", "warning", "The approval does not count", why.clone()),
        _ if step.approvers.is_empty() => line(
            "x",
            "warning",
            "No user may approve",
            "an admin can grant the role approver".to_owned(),
        ),
        _ => line(
            "pending",
            "blind",
            "A second approver approves",
            format!("may: {}", step.approvers.join(", ")),
        ),
    }
}

fn line(shape: &'static str, hue: &'static str, what: &'static str, note: String) -> AnyView {
    let note = domain::escape::visible(&note).into_owned();
    view! { <li><span class=format!("st quiet {hue}")><Shape name=shape/></span><span>{what}<small>{note}</small></span></li> }.into_any()
}

fn prove(step: &Step) -> AnyView {
    let here = path(&step.unlock.id);
    match step.proof {
        Proof::Password => {
            let field = Field {
                fault: step.typed.password_fault.clone(),
                ..Field::password("password", "Your password", "current-password")
            };
            view! {
                <form class="type" method="post" action=format!("{here}/prove")>
                    {field.view()}
                    <div class="do"><button class="btn solid" r#type="submit">"Authenticate again"</button></div>
                </form>
            }
            .into_any()
        }
        Proof::SignIn { at_provider } => {
            let next = ("next", here.as_str());
            let sign_in = if at_provider {
                crate::links::with_query("/sign-in/oidc", [("again", "1"), next])
            } else {
                crate::links::with_query("/sign-in", [next])
            };
            view! { <div class="do"><a class="btn solid wide" href=sign_in>"Sign in again"</a></div><p class="small ink2">"You return here afterwards."</p> }.into_any()
        }
        Proof::Never | Proof::Fresh(_) => alert(Some(
            "An API token cannot authenticate again: sign in as a user.".to_owned(),
        )),
    }
}

fn waiting(step: &Step) -> AnyView {
    let again = path(&step.unlock.id);
    view! {
        <div class="entry hand">
            <label for="link">"Give this link to the second approver"</label>
            <input id="link" class="mono" readonly=true value=step.link.clone() aria-describedby="link-note"/>
            <p class="help" id="link-note">"This page checks for the approval every 10 seconds; "<a class="link" href=again>"check now"</a>"."</p>
        </div>
        <div class="do">
            <button class="btn wide" r#type="button" disabled=true aria-describedby="opens"><Shape name="unlock"/>"Release this lock"</button>
            <p class="small ink2" id="opens">"Opens when a second approver has approved."</p>
        </div>
    }
    .into_any()
}

/// The last step before the release.
fn type_the_name(step: &Step) -> AnyView {
    view! {
        <form class="type" method="post" action=format!("{}/confirm", path(&step.unlock.id))>
            {name_field(step)}
            <div class="do"><button class="btn solid" r#type="submit"><Shape name="unlock"/>"Release this lock"</button></div>
            <p class="small ink2">"Releases exactly this holding, or nothing."</p>
        </form>
    }
    .into_any()
}

/// The field for the name, with the text to type above it.
pub(super) fn name_field(step: &Step) -> AnyView {
    let wanted = to_type(&step.unlock.resource);
    let spaces = (wanted.trim() != wanted || wanted.contains("  ")).then(
        || view! { <p class="help">"The name has leading, trailing or repeated spaces: type them too."</p> },
    );
    let fault = step.typed.name_fault.as_ref();
    let is_first = !step.is_alone || fault.is_some();
    let described = if fault.is_some() {
        "resource-fault to-type"
    } else {
        "to-type"
    };
    let is_bad = fault.is_some().then_some("true");
    let fault = fault.map(|fault| view! { <p class="fault" id="resource-fault">{notice(fault)}</p> });
    view! {
        <div class="entry">
            <label for="resource">"Type the name of the resource"</label>
            <p class="mono to-type" id="to-type"><bdi dir="ltr">{wanted}</bdi></p>
            <input id="resource" class="mono" name="resource" r#type="text" autocomplete="off" value=step.typed.name.clone() required=true
                aria-invalid=is_bad aria-describedby=described spellcheck="false" autocapitalize="none" autofocus=is_first/>
            {fault}
            {spaces}
        </div>
    }
    .into_any()
}
