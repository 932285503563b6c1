//! The user's own account: permissions, password, sessions.

use domain::access::Grant;
use leptos::prelude::*;

use super::{ago, sessions};
use crate::components::fact_list::Facts;
use crate::server_pages::field::{Field, alert, done};
use crate::server_pages::grants;
use crate::server_pages::layout::{Chrome, Page, page};

#[derive(Debug, Clone, Default)]
pub struct You {
    pub grants: Vec<Grant>,
    /// How this session began.
    pub way: String,
    pub authenticated_at: Option<i64>,
    pub has_password: bool,
    /// Managed by an identity provider.
    pub is_managed: bool,
    pub sessions: Vec<sessions::SessionRow>,
    pub now: i64,
    pub fault: Option<(String, String)>,
    pub refusal: Option<String>,
    pub done: Option<String>,
}

pub fn you(chrome: &Chrome, you: You) -> String {
    let facts = vec![
        ("you may act as", grants::words(&you.grants)),
        ("signed in by", you.way.clone().into_any()),
        ("authenticated", ago(you.authenticated_at, you.now, "never")),
    ];
    let content = view! {
        {alert(you.refusal.clone())}
        {done(you.done.clone())}
        <Facts cells=facts/>
        <section class="sec">
            <header><h2>"Your sessions"</h2></header>
            {sessions::table(&you.sessions, you.now, "/settings/sessions")}
        </section>
        {password(&you)}
    };
    let content = content.into_any();
    page(
        chrome,
        Page {
            title: format!("You are {}", chrome.name),
            lead: None,
            content,
        },
    )
}

fn password(you: &You) -> AnyView {
    if you.is_managed {
        return ().into_any();
    }
    let fault_of = |field: &str| {
        let fault = you.fault.as_ref().filter(|(name, _)| name == field);
        fault.map(|(_, why)| why.clone())
    };
    let old = you.has_password.then(|| {
        Field {
            fault: fault_of("old"),
            ..Field::password("old", "Current password", "current-password")
        }
        .view()
    });
    let new = Field {
        help: Some("At least 12 characters; several words make a good one."),
        fault: fault_of("password"),
        ..Field::password("password", "New password", "new-password")
    };
    let title = if you.has_password {
        "Change your password"
    } else {
        "Choose a password"
    };
    view! {
        <section class="panel" aria-labelledby="password-title">
            <header><h2 id="password-title">{title}</h2></header>
            <form method="post" action="/settings/password">
                {old}
                {new.view()}
                <div class="do"><button class="btn solid" r#type="submit">{title}</button></div>
                <p class="small ink2">"This ends your other sessions."</p>
            </form>
        </section>
    }
    .into_any()
}
