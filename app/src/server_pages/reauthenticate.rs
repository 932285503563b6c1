//! Signing in again: before a page whose changes require it, or to resend a rejected form.

use domain::alerts::OVERDUE;
use leptos::prelude::*;

use super::field::{Field, alert};
use super::html_document::document;
use crate::forms::reply::TypedFields;
use crate::links;
use crate::pages::unlock::data::Proof;
use crate::refusal_pages::{hidden_fields, send_again, typed_fields};

/// The signed-in user, and what every page says about the console.
#[derive(Debug, Clone)]
pub struct Visitor {
    pub name: String,
    pub is_read_only: bool,
    /// No server evaluates the alert rules.
    pub is_alerts_overdue: bool,
}

/// Next step after the sign-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Then {
    /// A page of the console.
    Open(String),
    /// A rejected form, with its URL.
    Send(String),
}

#[derive(Debug, Clone)]
pub struct Prove {
    pub proof: Proof,
    /// Name of the password field.
    pub field: &'static str,
    pub fault: Option<String>,
    pub then: Then,
    /// Input of the rejected form.
    pub typed: TypedFields,
}

const WHY: &str = "Approvals, and changes to users, tokens, protected prefixes and receivers, need authentication within the last 15 minutes.";

/// Before a page.
pub fn prove(visitor: &Visitor, prove: &Prove) -> String {
    let next = match &prove.then {
        Then::Open(path) | Then::Send(path) => path.as_str(),
    };
    let action = links::with_query("/prove", [("next", next)]);
    let content = match prove.proof {
        Proof::SignIn { at_provider } => sign_in(at_provider, next, false),
        _ => by_password(prove, &action, ().into_any()),
    };
    sheet(visitor, "Authenticate again", content)
}

/// In place of a page: the form was not executed and is resent from here.
pub fn resend(visitor: &Visitor, prove: &Prove, action: &str) -> String {
    let secrets_note = prove.typed.has_secret.then(|| {
        view! { <p class="small ink2">"Secrets are not stored: enter them again on the next page."</p> }
    });
    let content = match prove.proof {
        Proof::SignIn { at_provider } => view! {
            {sign_in(at_provider, "/", true)}
            {send_again(action, &prove.typed)}
        }
        .into_any(),
        _ => {
            let action = links::with_query("/prove", [("send", action)]);
            by_password(prove, &action, hidden_fields(&prove.typed))
        }
    };
    let content = view! { {typed_fields(&prove.typed)}{secrets_note}{content} };
    sheet(visitor, "Not done yet: authenticate again", content.into_any())
}

fn sheet(visitor: &Visitor, title: &'static str, content: AnyView) -> String {
    let overdue = visitor
        .is_alerts_overdue
        .then(|| view! { <p class="notice critical" role="alert">{OVERDUE}</p> });
    let read_only = visitor.is_read_only.then(|| {
        view! {
            <p class="notice warning" role="status">"The console is read-only: locks cannot be released until an admin turns read-only mode off."</p>
        }
    });
    let content = view! {
        <section class="sheet">
            <h1>{title}</h1>
            <p>{WHY}</p>
            {overdue}
            {read_only}
            {content}
        </section>
        <p class="aside">"Signed in as " <b>{visitor.name.clone()}</b> ". " <a href="/">"Overview"</a></p>
    };
    document(title, content.into_any())
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
    let label = match prove.then {
        Then::Open(_) => "Authenticate again",
        Then::Send(_) => "Authenticate and submit",
    };
    view! {
        <form class="type" method="post" action=action.to_owned()>
            {hidden}
            {field.view()}
            <div class="do"><button class="btn solid" r#type="submit">{label}</button></div>
        </form>
    }
    .into_any()
}

/// Link to sign in again, at the provider or here. It opens another tab if this page has a form with input.
fn sign_in(at_provider: bool, next: &str, in_new_tab: bool) -> AnyView {
    let href = if at_provider {
        links::with_query("/sign-in/oidc", [("again", "1"), ("next", next)])
    } else {
        links::with_query("/sign-in", [("next", next)])
    };
    let (target, label) = match in_new_tab {
        true => (Some("_blank"), "Sign in again, in a new tab"),
        false => (None, "Sign in again"),
    };
    view! { <div class="do"><a class="btn solid" href=href target=target rel="noopener">{label}</a></div> }
        .into_any()
}
