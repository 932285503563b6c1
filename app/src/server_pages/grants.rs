//! Grants as text, and as form rows that work without script.

use domain::access::{Grant, Role};
use domain::escape::visible;
use leptos::prelude::*;

use super::field::options_of;

/// The form parser ignores rows without a role.
pub const NO_ROLE: &str = "";
/// Empty rows added for new grants.
const SPARE_ROWS: usize = 2;

/// `operator on cache, for tenant_1:`, one line for each grant.
pub fn words(grants: &[Grant]) -> AnyView {
    if grants.is_empty() {
        return view! { <span class="ink3">"nothing"</span> }.into_any();
    }
    let lines = grants.iter().map(|grant| {
        let backend = grant.backend.as_ref().map(|name| {
            view! { <span class="ink2">" on "</span>{name.to_string()} }
        });
        let prefix = grant.prefix.as_deref().map(|prefix| {
            view! { <span class="ink2">" for "</span><bdi class="mono">{visible(prefix).into_owned()}</bdi> }
        });
        view! { <li>{grant.role.as_str()}{backend}{prefix}</li> }
    });
    view! { <ul class="may">{lines.collect_view()}</ul> }.into_any()
}

/// Role, backend and prefix; `number` distinguishes rows in labels.
fn row(number: usize, grant: Option<&Grant>, backends: &[String]) -> AnyView {
    let role = grant.map_or(NO_ROLE, |grant| grant.role.as_str());
    let backend = grant
        .and_then(|grant| grant.backend.as_ref())
        .map(ToString::to_string);
    let prefix = grant.and_then(|grant| grant.prefix.clone()).unwrap_or_default();
    let mut roles = vec![(NO_ROLE.to_owned(), "no role".to_owned())];
    roles.extend(Role::ALL.map(|role| (role.as_str().to_owned(), role.as_str().to_owned())));
    let mut places = vec![(String::new(), "every backend".to_owned())];
    places.extend(backends.iter().map(|name| (name.clone(), name.clone())));
    // A backend that is no longer configured is still part of the grant.
    if let Some(name) = backend.as_ref().filter(|name| !backends.contains(name)) {
        places.push((name.clone(), format!("{name}, not configured")));
    }
    view! {
        <div class="grant">
            <select name="role" aria-label=format!("role {number}")>{options_of(roles, role)}</select>
            <select name="backend" aria-label=format!("backend of role {number}")>
                {options_of(places, backend.as_deref().unwrap_or_default())}
            </select>
            <input name="prefix" value=prefix placeholder="every prefix" aria-label=format!("prefix of role {number}")
                spellcheck="false" autocapitalize="none" autocomplete="off"/>
        </div>
    }
    .into_any()
}

/// A row for each grant and some empty ones.
pub fn rows(grants: &[Grant], backends: &[String], fault: Option<String>) -> AnyView {
    let count = grants.len() + SPARE_ROWS;
    some_rows(count, grants, backends, fault)
}

/// One row, for a new user.
pub fn one_row(role: Role, backends: &[String], fault: Option<String>) -> AnyView {
    some_rows(1, &[Grant::everywhere(role)], backends, fault)
}

fn some_rows(count: usize, grants: &[Grant], backends: &[String], fault: Option<String>) -> AnyView {
    let rows = (0..count).map(|index| row(index + 1, grants.get(index), backends));
    let note = match fault {
        Some(fault) => view! { <p class="fault">{fault}</p> }.into_any(),
        None => view! {
            <p class="help">
                "Prefixes match whole segments: "<span class="mono">"tenant_1"</span>" covers "
                <span class="mono">"tenant_1:close"</span>", not "<span class="mono">"tenant_12"</span>"."
            </p>
        }
        .into_any(),
    };
    view! {
        <fieldset class="entry grants">
            <legend>"May act as"</legend>
            {rows.collect_view()}
            {note}
        </fieldset>
    }
    .into_any()
}
