//! The next requirement before the release: of the requesting user, and of a second approver.
//!
//! Created again only when the requirement changes, so that a refetch keeps what is being typed.

use domain::time_format;
use domain::unlock::{Approval, to_type};
use leptos::html::Input;
use leptos::prelude::*;

use super::parts::{name, notice, read_again, time};
use super::step::StepForms;
use super::{break_glass, path};
use crate::components::reactive::changing;
use crate::components::state_badge::Shape;
use crate::format;
use crate::forms::console_form::{ConsoleForm, use_form};
use crate::forms::field::{PasswordField, SubmitButton, is_invalid};
use crate::links;
use crate::pages::unlock::data::{Proof, UnlockStep};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Requirement {
    /// The requester can no longer confirm it; the reason.
    Hindered(String),
    TypeName,
    Authenticate(Proof),
    BreakGlass {
        receivers: u64,
    },
    /// Waits for a second approver, who gets this link.
    Wait {
        link: String,
    },
    /// The reader is asked to approve.
    Approve {
        is_fresh: bool,
    },
    /// Another user confirms it.
    Read {
        approval: Option<Approval>,
        refused: Option<String>,
    },
}

impl Requirement {
    pub(super) fn next(step: &UnlockStep, is_break_glass: bool) -> Self {
        let is_fresh = matches!(step.proof, Proof::Fresh(_));
        if !step.is_owner {
            return if step.may_approve {
                Self::Approve { is_fresh }
            } else {
                Self::Read {
                    approval: step.unlock.approval.clone(),
                    refused: step.refused_as_second.clone(),
                }
            };
        }
        match (&step.hindrance, &step.protection) {
            (Some(why), _) => Self::Hindered(why.clone()),
            (None, None) => Self::TypeName,
            (None, Some(_)) if !is_fresh => Self::Authenticate(step.proof.clone()),
            (None, Some(_)) if is_break_glass => Self::BreakGlass {
                receivers: step.receivers,
            },
            (None, Some(_)) if step.unapproved.is_some() => Self::Wait {
                link: step.link.clone(),
            },
            (None, Some(_)) => Self::TypeName,
        }
    }

    pub(super) fn view(self, of: &RequirementOf) -> AnyView {
        match self {
            Self::Hindered(why) => {
                view! { <p class="go"><b>"Cannot be unlocked now: "</b>{notice(&why)}</p> }.into_any()
            }
            Self::TypeName => type_the_name(of),
            Self::Authenticate(proof) => authenticate(&proof, of),
            Self::BreakGlass { receivers } => {
                break_glass::form(&of.id, of.wanted.clone(), receivers, of.forms.confirm)
            }
            Self::Wait { link } => waiting(link, of),
            Self::Approve { is_fresh } => approve(is_fresh, of),
            Self::Read { approval, refused } => read_only(approval.as_ref(), refused.as_deref(), of),
        }
    }
}

/// Data and state shared by all requirements of one unlock.
#[derive(Clone)]
pub(super) struct RequirementOf {
    pub(super) id: String,
    pub(super) by_name: String,
    /// The name as it must be typed.
    pub(super) wanted: String,
    pub(super) forms: StepForms,
    /// Reads the unlock again.
    pub(super) read: Callback<()>,
}

impl RequirementOf {
    pub(super) fn new(step: &UnlockStep, forms: StepForms, read: Callback<()>) -> Self {
        Self {
            id: step.unlock.id.clone(),
            by_name: step.unlock.by_name.clone(),
            wanted: to_type(&step.unlock.lock.resource),
            forms,
            read,
        }
    }
}

/// State of the second factor and of the approval; nothing without protection.
#[component]
pub fn ApprovalState(step: Signal<UnlockStep>) -> impl IntoView {
    changing(move || step.with(approval_state))
}

fn approval_state(step: &UnlockStep) -> AnyView {
    if !step.is_owner || step.hindrance.is_some() {
        return ().into_any();
    }
    let Some(why) = step.protection.clone() else {
        return ().into_any();
    };
    view! {
        <h3>"Second approver "<span class="small ink3">{why}</span></h3>
        <ol class="appr">{proof_line(step)}{approval_line(step)}</ol>
    }
    .into_any()
}

fn proof_line(step: &UnlockStep) -> AnyView {
    match step.proof {
        Proof::Fresh(ago) => requirement_item(
            "ok",
            "healthy",
            "Authenticated",
            &format!("{} ago; valid for 15 m", domain::format::age(ago)),
        ),
        Proof::Password | Proof::SignIn { .. } | Proof::Never => requirement_item(
            "pending",
            "blind",
            "Authenticate again",
            "the last time is more than 15 m ago",
        ),
    }
}

fn approval_line(step: &UnlockStep) -> AnyView {
    match (&step.unlock.approval, &step.unapproved) {
        (Some(approval), None) => requirement_item(
            "ok",
            "healthy",
            "Approved by a second approver",
            &format!("{}, at {}", approval.by_name, time_format::timed(approval.at)),
        ),
        (Some(_), Some(why)) => requirement_item("x", "warning", "The approval does not count", why),
        _ if step.approvers.is_empty() => requirement_item(
            "x",
            "warning",
            "No user may approve",
            "an admin can grant the role approver",
        ),
        _ => requirement_item(
            "pending",
            "blind",
            "A second approver approves",
            &format!("may approve: {}", step.approvers.join(", ")),
        ),
    }
}

fn requirement_item(shape: &'static str, hue: &'static str, what: &'static str, note: &str) -> AnyView {
    let note = format::prose(note);
    view! { <li><span class=format!("st quiet {hue}")><Shape name=shape/></span><span>{what}<small>{note}</small></span></li> }.into_any()
}

fn authenticate(proof: &Proof, of: &RequirementOf) -> AnyView {
    let unlock_path = path(&of.id);
    match proof {
        Proof::Password => view! {
            <ConsoleForm class="type" action=format!("{unlock_path}/prove") stays=true state=of.forms.prove>
                <PasswordField name="password" label="Your password" autocomplete="current-password"/>
                <div class="do"><SubmitButton>"Authenticate again"</SubmitButton></div>
            </ConsoleForm>
        }
        .into_any(),
        Proof::SignIn { at_provider } => {
            let next = ("next", unlock_path.as_str());
            let sign_in = if *at_provider {
                links::with_query("/sign-in/oidc", [("again", "1"), next])
            } else {
                links::with_query("/sign-in", [next])
            };
            view! { <div class="do"><a class="btn solid wide" href=sign_in rel="external">"Sign in again"</a></div><p class="small ink2">"You return here afterwards."</p> }.into_any()
        }
        Proof::Never | Proof::Fresh(_) => view! {
            <p class="notice critical" role="alert">"An API token cannot authenticate again: sign in as a user."</p>
        }
        .into_any(),
    }
}

fn waiting(link: String, of: &RequirementOf) -> AnyView {
    let again = read_again(path(&of.id), "check now", of.read);
    view! {
        <div class="entry hand">
            <label for="link">"Give this link to the second approver"</label>
            <input id="link" class="mono" readonly=true value=link aria-describedby="link-note"/>
            <p class="help" id="link-note">"The next step appears here after the approval; "{again}"."</p>
        </div>
        <div class="do">
            <button class="btn wide" r#type="button" disabled=true aria-describedby="opens"><Shape name="unlock"/>"Release this lock"</button>
            <p class="small ink2" id="opens">"Available after a second approver has approved."</p>
        </div>
    }
    .into_any()
}

/// The last step before the release.
fn type_the_name(of: &RequirementOf) -> AnyView {
    let wanted = of.wanted.clone();
    view! {
        <ConsoleForm class="type" action=format!("{}/confirm", path(&of.id)) stays=true state=of.forms.confirm>
            <NameField wanted is_first=true/>
            <div class="do"><SubmitButton><Shape name="unlock"/>"Release this lock"</SubmitButton></div>
            <p class="small ink2">"Releases exactly this grant, or nothing."</p>
        </ConsoleForm>
    }
    .into_any()
}

fn approve(is_fresh: bool, of: &RequirementOf) -> AnyView {
    let unlock_path = path(&of.id);
    if !is_fresh {
        let prove = links::with_query("/prove", [("next", unlock_path)]);
        return view! {
            <h3>"Your approval is requested"</h3>
            <p class="ink2">"An approval needs authentication within the last 15 minutes."</p>
            <div class="do"><a class="btn solid" href=prove rel="external">"Authenticate again"</a></div>
            <p class="small ink2">"You return here afterwards."</p>
        }
        .into_any();
    }
    view! {
        <h3>"Your approval is requested"</h3>
        <p class="ink2">"You approve that "{name(&of.by_name)}" releases exactly this grant and everything listed with it. Both names go to the audit log."</p>
        <ConsoleForm action=format!("{unlock_path}/approve") stays=true state=of.forms.approve>
            <div class="do"><SubmitButton>"Approve"</SubmitButton></div>
        </ConsoleForm>
        <p class="small ink2">"To refuse, close this page; the intent then expires."</p>
    }
    .into_any()
}

fn read_only(approval: Option<&Approval>, refused: Option<&str>, of: &RequirementOf) -> AnyView {
    let approved = approval.map(|approval| {
        view! { <p class="st healthy quiet"><Shape name="ok"/><span>{name(&approval.by_name)}" approved it at "{time(approval.at)}</span></p> }.into_any()
    });
    let refused = refused
        .map(|why| view! { <p class="go"><b>"You cannot approve this: "</b>{notice(why)}</p> }.into_any());
    view! { <p class="go">"Only "{name(&of.by_name)}" can confirm this intent."</p>{refused}{approved} }
        .into_any()
}

/// Name of the field.
const NAME: &str = "resource";

/// The field for the name, with the text to type above it.
#[component]
pub fn NameField(
    /// As it must be typed.
    wanted: String,
    /// The first field of its form, which gets the focus.
    is_first: bool,
) -> impl IntoView {
    let spaces = (wanted.trim() != wanted || wanted.contains("  ")).then(|| {
        view! { <p class="help">"The name has leading, trailing or repeated spaces: type them too."</p> }
            .into_any()
    });
    let form = use_form();
    let fault = Memo::new(move |_| form.fault(NAME));
    let described = move || match fault.with(Option::is_some) {
        true => "resource-fault to-type",
        false => "to-type",
    };
    let input = NodeRef::<Input>::new();
    Effect::new(move |_| {
        if let Some(input) = input.get().filter(|_| is_first) {
            let _ = input.focus();
        }
    });
    view! {
        <div class="entry">
            <label for=NAME>"Type the name of the resource"</label>
            <p class="mono to-type" id="to-type"><bdi dir="ltr">{wanted}</bdi></p>
            <input node_ref=input id=NAME class="mono" name=NAME r#type="text" autocomplete="off" value=form.typed_value(NAME, "") required=true
                aria-invalid=is_invalid(NAME) aria-describedby=described spellcheck="false" autocapitalize="none" autofocus=is_first/>
            {changing(move || fault.get().map(|fault| view! { <p class="fault" id="resource-fault">{notice(&fault)}</p> }.into_any()))}
            {spaces}
        </div>
    }
    .into_any()
}
