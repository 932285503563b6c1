//! Everybody who may sign in, and adding somebody.

use domain::access::{Grant, Role};
use domain::human;
use leptos::prelude::*;

use super::ago;
use crate::forms::chrome::{Chrome, Page, page};
use crate::forms::field::{Field, alert, secret_once};
use crate::forms::grants;

/// One line of the list.
#[derive(Debug, Clone)]
pub struct Row {
    pub id: String,
    pub name: String,
    pub grants: Vec<Grant>,
    /// `password`, `link` or the name of an identity provider.
    pub way: String,
    pub created_at: i64,
    pub is_disabled: bool,
    /// Of a session that lives.
    pub seen_at: Option<i64>,
}

#[derive(Debug, Clone, Default)]
pub struct People {
    pub rows: Vec<Row>,
    pub backends: Vec<String>,
    /// Milliseconds since 1970.
    pub now: i64,
    /// The form as it was refused.
    pub name: String,
    pub fault: Option<(String, String)>,
    pub refusal: Option<String>,
    /// Somebody was just added: their name and the link that signs them in.
    pub added: Option<(String, String)>,
}

pub fn people(chrome: &Chrome, people: People) -> String {
    let enabled = people.rows.iter().filter(|row| !row.is_disabled).count();
    let admins = people.rows.iter().filter(|row| is_admin(row)).count();
    let title = format!(
        "{}, {} of them {}",
        human::counted(enabled as u64, "person may sign in", "people may sign in"),
        human::count(admins as u64),
        if admins == 1 { "an admin" } else { "admins" }
    );
    let content = view! {
        {people.added.clone().map(|(name, link)| secret_once(
            format!("{name} was added"),
            link,
            "Hand this link over: it signs them in, once, within an hour. They choose their own password under Settings. It is not shown again.",
        ))}
        {alert(people.refusal.clone())}
        <div class="with-form">
            <section class="sec">
                <header><h2>"People"</h2><span class="end">{human::counted(people.rows.len() as u64, "row", "rows")}</span></header>
                {list(&people)}
            </section>
            {add(&people)}
        </div>
    };
    let lead =
        "Who they are, what they may do and where. Every change stands in the audit record.".to_owned();
    let content = content.into_any();
    page(
        chrome,
        Page {
            title,
            lead: Some(lead),
            content,
        },
    )
}

fn is_admin(row: &Row) -> bool {
    !row.is_disabled
        && row
            .grants
            .iter()
            .any(|grant| grant.role == Role::Admin && grant.is_global())
}

fn list(people: &People) -> AnyView {
    let rows = people.rows.iter().map(|row| {
        let state = if row.is_disabled { "disabled" } else { "" };
        let seen = match row.seen_at {
            Some(at) => view! { "active "{ago(Some(at), people.now, "")} }.into_any(),
            None => view! { <span class="ink3">"not signed in"</span> }.into_any(),
        };
        view! {
            <tr class:is-off=row.is_disabled>
                <th scope="row"><a class="link" href=format!("/settings/people/{}", row.id)>{row.name.clone()}</a></th>
                <td class="wrap">{grants::words(&row.grants)}</td>
                <td>{row.way.clone()}</td>
                <td>{seen}</td>
                <td>{state}</td>
            </tr>
        }
    });
    view! {
        <div class="scroll">
            <table class="t st-table">
                <thead><tr><th scope="col">"name"</th><th scope="col">"may act as"</th><th scope="col">"signs in by"</th>
                    <th scope="col">"now"</th><th scope="col"><span class="sr">"state"</span></th></tr></thead>
                <tbody>{rows.collect_view()}</tbody>
            </table>
        </div>
    }
    .into_any()
}

fn add(people: &People) -> AnyView {
    let fault_of = |field: &str| {
        let fault = people.fault.as_ref().filter(|(name, _)| name == field);
        fault.map(|(_, why)| why.clone())
    };
    let name = Field {
        help: Some("Letters, digits and -_.@+"),
        fault: fault_of("name"),
        ..Field::text("name", "Name", people.name.clone())
    };
    view! {
        <section class="panel" aria-labelledby="add">
            <header><h2 id="add">"Add somebody"</h2></header>
            <form method="post" action="/settings/people">
                {name.view()}
                {grants::one_row(Role::Viewer, &people.backends, fault_of("prefix").or(fault_of("role")))}
                <div class="do"><button class="btn solid" r#type="submit">"Add and make a sign-in link"</button></div>
            </form>
        </section>
    }
    .into_any()
}
