//! One person: what they may do, how they sign in, and leaving.

use domain::access::Grant;
use leptos::prelude::*;

use super::ago;
use crate::components::facts::Facts;
use crate::forms::chrome::{Chrome, Page, page};
use crate::forms::field::{alert, done, secret_once};
use crate::forms::grants;

#[derive(Debug, Clone, Default)]
pub struct Person {
    pub id: String,
    pub name: String,
    pub grants: Vec<Grant>,
    pub way: String,
    pub created_at: i64,
    pub disabled_at: Option<i64>,
    pub sessions: usize,
    /// Rights come from an identity provider, at each sign-in.
    pub is_managed: bool,
    pub is_oneself: bool,
    pub backends: Vec<String>,
    pub now: i64,
    pub fault: Option<String>,
    pub refusal: Option<String>,
    pub done: Option<String>,
    /// A link was just made.
    pub link: Option<String>,
}

pub fn person(chrome: &Chrome, person: Person) -> String {
    let title = match person.disabled_at {
        Some(_) => format!("{} is disabled", person.name),
        None => person.name.clone(),
    };
    let facts = vec![
        ("added", ago(Some(person.created_at), person.now, "")),
        ("signs in by", person.way.clone().into_any()),
        ("sessions now", person.sessions.to_string().into_any()),
    ];
    let content = view! {
        {person.link.clone().map(|link| secret_once(
            format!("A link that signs {} in", person.name),
            link,
            "It works once, within an hour; earlier ones do not work any more. It is not shown again.",
        ))}
        {alert(person.refusal.clone())}
        {done(person.done.clone())}
        <Facts cells=facts/>
        {rights(&person)}
        <div class="acts">{acts(&person)}</div>
    };
    let content = content.into_any();
    page(
        chrome,
        Page {
            title,
            lead: None,
            content,
        },
    )
}

fn rights(person: &Person) -> AnyView {
    let content = if person.is_managed {
        view! {
            <p class="ink2">"The identity provider says what they may do, anew at each sign-in."</p>
            {grants::words(&person.grants)}
        }
        .into_any()
    } else {
        view! {
            <form method="post" action=format!("/settings/people/{}/grants", person.id)>
                {grants::rows(&person.grants, &person.backends, person.fault.clone())}
                <div class="do"><button class="btn solid" r#type="submit">"Save"</button></div>
            </form>
        }
        .into_any()
    };
    view! { <section class="sec"><header><h2>"What they may do"</h2></header>{content}</section> }.into_any()
}

fn acts(person: &Person) -> AnyView {
    let post = |act: &str| format!("/settings/people/{}/{act}", person.id);
    if person.disabled_at.is_some() {
        return act(
            "Enable",
            "They may sign in again, and act as before.",
            post("enable"),
            false,
        );
    }
    let warning = if person.is_oneself {
        "This is you: you will be signed out at once."
    } else {
        "Their sessions end at once. What they did stays in the record."
    };
    view! {
        {act("Make a sign-in link", "For somebody who is new or has forgotten their password.", post("link"), false)}
        {act("Disable", warning, post("disable"), true)}
    }
    .into_any()
}

fn act(word: &'static str, consequence: &'static str, action: String, is_last: bool) -> AnyView {
    view! {
        <form class="act" class:apart=is_last method="post" action=action>
            <p>{consequence}</p>
            <button class="btn" r#type="submit">{word}</button>
        </form>
    }
    .into_any()
}
