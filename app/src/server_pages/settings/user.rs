//! One user: grants, sign-in method, removal.

use domain::access::Grant;
use leptos::prelude::*;

use super::ago;
use crate::components::fact_list::Facts;
use crate::server_pages::field::{alert, done, secret_once};
use crate::server_pages::grants;
use crate::server_pages::layout::{Chrome, Page, page};

#[derive(Debug, Clone, Default)]
pub struct User {
    pub id: String,
    pub name: String,
    pub grants: Vec<Grant>,
    pub way: String,
    pub created_at: i64,
    pub disabled_at: Option<i64>,
    pub sessions: usize,
    /// Grants come from an identity provider at each sign-in.
    pub is_managed: bool,
    pub is_oneself: bool,
    pub backends: Vec<String>,
    pub now: i64,
    pub fault: Option<String>,
    pub refusal: Option<String>,
    pub done: Option<String>,
    /// A sign-in link was just created.
    pub link: Option<String>,
}

pub fn user(chrome: &Chrome, user: User) -> String {
    let title = match user.disabled_at {
        Some(_) => format!("{} is disabled", user.name),
        None => user.name.clone(),
    };
    let facts = vec![
        ("added", ago(Some(user.created_at), user.now, "")),
        ("signs in by", user.way.clone().into_any()),
        ("sessions now", user.sessions.to_string().into_any()),
    ];
    let content = view! {
        {user.link.clone().map(|link| secret_once(
            format!("Sign-in link for {}", user.name),
            link,
            "Valid once, within an hour; earlier links are void. It is not shown again.",
        ))}
        {alert(user.refusal.clone())}
        {done(user.done.clone())}
        <Facts cells=facts/>
        {rights(&user)}
        <div class="acts">{acts(&user)}</div>
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

fn rights(user: &User) -> AnyView {
    let content = if user.is_managed {
        view! {
            <p class="ink2">"The identity provider sets their roles at each sign-in."</p>
            {grants::words(&user.grants)}
        }
        .into_any()
    } else {
        view! {
            <form method="post" action=format!("/settings/users/{}/grants", user.id)>
                {grants::rows(&user.grants, &user.backends, user.fault.clone())}
                <div class="do"><button class="btn solid" r#type="submit">"Save"</button></div>
            </form>
        }
        .into_any()
    };
    view! { <section class="sec"><header><h2>"Roles"</h2></header>{content}</section> }.into_any()
}

fn acts(user: &User) -> AnyView {
    let post = |act: &str| format!("/settings/users/{}/{act}", user.id);
    if user.disabled_at.is_some() {
        return act("Enable", "Restores sign-in and roles.", post("enable"), false);
    }
    let warning = if user.is_oneself {
        "This is you: you will be signed out at once."
    } else {
        "Their sessions end at once. Their audit entries remain."
    };
    view! {
        {act("Create a sign-in link", "For a new user or a forgotten password.", post("link"), false)}
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
