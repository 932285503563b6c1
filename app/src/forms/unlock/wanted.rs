//! What is still wanted before the act: of whoever began it, and of a second person.

use domain::human;
use domain::unlock::to_type;
use leptos::prelude::*;

use super::parts::{name, time, told};
use super::{Proof, Step, alone, path};
use crate::components::state_badge::Shape;
use crate::forms::field::{Field, alert};

pub(super) fn of_owner(step: &Step) -> AnyView {
    if let Some(why) = &step.hindrance {
        return view! { <p class="go"><b>"Not now: "</b>{told(why)}</p> }.into_any();
    }
    if !step.is_protected() {
        return type_the_name(step);
    }
    let why = step.tier_reason.as_ref().map(ToString::to_string);
    let is_proved = matches!(step.proof, Proof::Fresh(_));
    let next = match (is_proved, step.is_alone, &step.unapproved) {
        (false, ..) => prove(step),
        (true, true, _) => alone::form(step),
        (true, false, None) => type_the_name(step),
        (true, false, Some(_)) => waiting(step),
    };
    view! {
        <h3>"Second person "<span class="small ink3">{why}</span></h3>
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
                <h3>"You are asked to be the second person"</h3>
                <p class="ink2">"An approval needs authentication within the last 15 minutes."</p>
                <div class="do"><a class="btn solid" href=prove>"Prove who you are"</a></div>
                <p class="small ink2">"It leads back here."</p>
            }
            .into_any();
        }
        return view! {
            <h3>"You are asked to be the second person"</h3>
            <p class="ink2">"You approve that "{name(by)}" ends exactly the holding beside, and everything that dies with it. Both your names go into the record."</p>
            <form method="post" action=action><div class="do"><button class="btn solid" r#type="submit">"Approve"</button></div></form>
            <p class="small ink2">"To refuse, close this page: without you it runs out."</p>
        }
        .into_any();
    }
    let approved = step.unlock.approval.as_ref().map(|approval| {
        view! { <p class="st healthy quiet"><Shape name="ok"/><span>{name(&approval.by_name)}" approved it at "{time(approval.at)}</span></p> }
    });
    let refused = step.refused_as_second.as_ref().map(|why| {
        view! { <p class="go"><b>"You cannot approve this: "</b>{told(why)}</p> }
    });
    view! { <p class="go">"Only "{name(by)}" can confirm this intent."</p>{refused}{approved} }.into_any()
}

fn proof_line(step: &Step) -> AnyView {
    match step.proof {
        Proof::Fresh(ago) => line(
            "ok",
            "healthy",
            "You proved who you are",
            format!("{} ago; it counts for 15 m", human::age(ago)),
        ),
        _ => line(
            "pending",
            "blind",
            "Prove again who you are",
            "the last time is more than 15 m ago".to_owned(),
        ),
    }
}

fn approval_line(step: &Step) -> AnyView {
    match (&step.unlock.approval, &step.unapproved) {
        (Some(approval), None) => line(
            "ok",
            "healthy",
            "A second person approved",
            format!(
                "{}, at {}",
                domain::escape::visible(&approval.by_name),
                domain::moment::timed(approval.at)
            ),
        ),
        (Some(_), Some(why)) => line("x", "warning", "The approval does not count", why.clone()),
        _ if step.approvers.is_empty() => line(
            "x",
            "warning",
            "Nobody here may approve",
            "an admin can grant the role approver".to_owned(),
        ),
        _ => line(
            "pending",
            "blind",
            "A second person approves",
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
                    <div class="do"><button class="btn solid" r#type="submit">"Prove who you are"</button></div>
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
            view! { <div class="do"><a class="btn solid wide" href=sign_in>"Sign in again"</a></div><p class="small ink2">"It leads back here."</p> }.into_any()
        }
        Proof::Never | Proof::Fresh(_) => alert(Some(
            "A program's token cannot prove who somebody is: sign in as a person.".to_owned(),
        )),
    }
}

fn waiting(step: &Step) -> AnyView {
    let again = path(&step.unlock.id);
    view! {
        <div class="entry hand">
            <label for="link">"Give this link to the second person"</label>
            <input id="link" class="mono" readonly=true value=step.link.clone() aria-describedby="link-note"/>
            <p class="help" id="link-note">"This page looks by itself every 10 seconds whether they have approved; "<a class="link" href=again>"look now"</a>"."</p>
        </div>
        <div class="do">
            <button class="btn wide" r#type="button" disabled=true aria-describedby="opens"><Shape name="unlock"/>"Release this lock"</button>
            <p class="small ink2" id="opens">"Opens when a second person has approved."</p>
        </div>
    }
    .into_any()
}

/// The last step before the act.
fn type_the_name(step: &Step) -> AnyView {
    view! {
        <form class="type" method="post" action=format!("{}/confirm", path(&step.unlock.id))>
            {name_field(step)}
            <div class="do"><button class="btn solid" r#type="submit"><Shape name="unlock"/>"Release this lock"</button></div>
            <p class="small ink2">"Ends exactly the holding beside, or nothing."</p>
        </form>
    }
    .into_any()
}

/// The field with the name to be typed above it, as it is to be typed.
pub(super) fn name_field(step: &Step) -> AnyView {
    let wanted = to_type(&step.unlock.resource);
    let spaces = (wanted.trim() != wanted || wanted.contains("  "))
        .then(|| view! { <p class="help">"The name begins or ends with a space, or has several in a row: they count."</p> });
    let fault = step.typed.name_fault.as_ref();
    let is_first = !step.is_alone || fault.is_some();
    let described = if fault.is_some() {
        "resource-fault to-type"
    } else {
        "to-type"
    };
    let is_bad = fault.is_some().then_some("true");
    let fault = fault.map(|fault| view! { <p class="fault" id="resource-fault">{told(fault)}</p> });
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
