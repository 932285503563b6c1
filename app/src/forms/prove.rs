//! Authenticating once more: before a page whose changes ask for it, or to send a form again that was refused.

use leptos::prelude::*;

use super::chrome::{Chrome, Page, page};
use super::field::{Field, alert};
use super::not_done::Typed;
use super::unlock::Proof;
use crate::links;

/// What follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Then {
    /// A page of ours.
    Open(String),
    /// A form that was refused, with its address.
    Send(String),
}

#[derive(Debug, Clone)]
pub struct Prove {
    pub proof: Proof,
    /// Name of the password's field.
    pub field: &'static str,
    pub fault: Option<String>,
    pub then: Then,
    /// What was typed into the form that was refused.
    pub typed: Typed,
}

const WHY: &str =
    "Changes to people, tokens, tiers and receivers need authentication within the last 15 minutes.";

/// Before a page.
pub fn prove(chrome: &Chrome, prove: &Prove) -> String {
    let next = match &prove.then {
        Then::Open(path) | Then::Send(path) => path.as_str(),
    };
    let action = links::with_query("/prove", [("next", next)]);
    let content = match prove.proof {
        Proof::SignIn { at_provider } => sign_in(at_provider, next, false),
        _ => by_password(prove, &action, ().into_any()),
    };
    around(chrome, "Prove who you are", content)
}

/// Instead of a page: the form was not done, and is sent again from here.
pub fn resend(chrome: &Chrome, prove: &Prove, action: &str) -> String {
    let kept = prove.typed.has_secret().then(|| {
        view! { <p class="small ink2">"Secrets are not kept: type them again on the next page."</p> }
    });
    let content = match prove.proof {
        Proof::SignIn { at_provider } => view! {
            {sign_in(at_provider, "/", true)}
            {prove.typed.send_again(action)}
        }
        .into_any(),
        _ => {
            let by = links::with_query("/prove", [("send", action)]);
            by_password(prove, &by, prove.typed.hidden())
        }
    };
    let content = view! { {prove.typed.view()}{kept}{content} };
    around(
        chrome,
        "Nothing was done yet: prove who you are",
        content.into_any(),
    )
}

fn around(chrome: &Chrome, title: &str, content: AnyView) -> String {
    let content = view! { <section class="sheet">{content}</section> };
    page(
        chrome,
        Page {
            title: title.to_owned(),
            lead: Some(WHY.to_owned()),
            content: content.into_any(),
        },
    )
}

fn by_password(prove: &Prove, action: &str, hidden: AnyView) -> AnyView {
    if prove.proof == Proof::Never {
        return alert(Some(
            "An API token cannot authenticate again: sign in as a user.".to_owned(),
        ));
    }
    let field = Field {
        fault: prove.fault.clone(),
        ..Field::password(prove.field, "Your password", "current-password")
    };
    let word = match prove.then {
        Then::Open(_) => "Prove who you are",
        Then::Send(_) => "Prove who you are, and send it",
    };
    view! {
        <form class="type" method="post" action=action.to_owned()>
            {hidden}
            {field.view()}
            <div class="do"><button class="btn solid" r#type="submit">{word}</button></div>
        </form>
    }
    .into_any()
}

/// At the provider, or with a new link: in a tab of its own where a form waits here.
fn sign_in(at_provider: bool, next: &str, is_beside: bool) -> AnyView {
    let href = if at_provider {
        links::with_query("/sign-in/oidc", [("again", "1"), ("next", next)])
    } else {
        links::with_query("/sign-in", [("next", next)])
    };
    let (target, word) = match is_beside {
        true => (Some("_blank"), "Sign in again, in a new tab"),
        false => (None, "Sign in again"),
    };
    view! { <div class="do"><a class="btn solid" href=href target=target rel="noopener">{word}</a></div> }
        .into_any()
}
