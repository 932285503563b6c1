//! All users, and adding one.

use domain::access::{Grant, Role};
use domain::format;
use leptos::prelude::*;

use super::ago;
use crate::server_pages::field::{Field, alert, secret_once};
use crate::server_pages::grants;
use crate::server_pages::layout::{Chrome, Page, page};

/// One row of the list.
#[derive(Debug, Clone)]
pub struct UserRow {
    pub id: String,
    pub name: String,
    pub grants: Vec<Grant>,
    /// `password`, `link` or the name of an identity provider.
    pub way: String,
    pub created_at: i64,
    pub is_disabled: bool,
    /// Last use of a live session.
    pub seen_at: Option<i64>,
}

#[derive(Debug, Clone, Default)]
pub struct Users {
    pub rows: Vec<UserRow>,
    pub backends: Vec<String>,
    /// Milliseconds since 1970.
    pub now: i64,
    /// Input of a rejected form.
    pub name: String,
    pub fault: Option<(String, String)>,
    pub refusal: Option<String>,
    /// A user who was just added: name and sign-in link.
    pub added: Option<(String, String)>,
}

pub fn users(chrome: &Chrome, users: Users) -> String {
    let enabled = users.rows.iter().filter(|row| !row.is_disabled).count();
    let admins = users.rows.iter().filter(|row| is_admin(row)).count();
    let title = format!(
        "{}, {} of them {}",
        format::counted(enabled as u64, "user may sign in", "users may sign in"),
        format::count(admins as u64),
        if admins == 1 { "an admin" } else { "admins" }
    );
    let content = view! {
        {users.added.clone().map(|(name, link)| secret_once(
            format!("{name} was added"),
            link,
            "Send them this link: it signs them in once, within an hour. They set their password under Settings. It is not shown again.",
        ))}
        {alert(users.refusal.clone())}
        <div class="with-form">
            <section class="sec">
                <header><h2>"Users"</h2><span class="end">{format::counted(users.rows.len() as u64, "row", "rows")}</span></header>
                {list(&users)}
            </section>
            {add(&users)}
        </div>
    };
    let lead = "Accounts and their roles by backend and prefix. Every change is in the audit log.".to_owned();
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

fn is_admin(row: &UserRow) -> bool {
    !row.is_disabled
        && row
            .grants
            .iter()
            .any(|grant| grant.role == Role::Admin && grant.is_global())
}

fn list(users: &Users) -> AnyView {
    let rows = users.rows.iter().map(|row| {
        let state = if row.is_disabled { "disabled" } else { "" };
        let seen = match row.seen_at {
            Some(at) => view! { "active "{ago(Some(at), users.now, "")} }.into_any(),
            None => view! { <span class="ink3">"not signed in"</span> }.into_any(),
        };
        view! {
            <tr class:is-off=row.is_disabled>
                <th scope="row"><a class="link" href=format!("/settings/users/{}", row.id)>{row.name.clone()}</a></th>
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

fn add(users: &Users) -> AnyView {
    let fault_of = |field: &str| {
        let fault = users.fault.as_ref().filter(|(name, _)| name == field);
        fault.map(|(_, why)| why.clone())
    };
    let name = Field {
        help: Some("Letters, digits and -_.@+"),
        fault: fault_of("name"),
        ..Field::text("name", "Name", users.name.clone())
    };
    view! {
        <section class="panel" aria-labelledby="add">
            <header><h2 id="add">"New user"</h2></header>
            <form method="post" action="/settings/users">
                {name.view()}
                {grants::one_row(Role::Viewer, &users.backends, fault_of("prefix").or(fault_of("role")))}
                <div class="do"><button class="btn solid" r#type="submit">"Add user"</button></div>
            </form>
        </section>
    }
    .into_any()
}
