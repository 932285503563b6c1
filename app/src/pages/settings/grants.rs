//! Grants as text, and as form rows that work without a script.

use domain::access::{Grant, Role};
use domain::escape::visible;
use leptos::prelude::*;

use crate::forms::console_form::{FormState, use_form};
use crate::forms::field::options_view;

/// The form parser skips rows without a role.
const NO_ROLE: &str = "";
/// Empty rows for new grants.
const SPARE_ROWS: usize = 2;
/// Fields of a row; each has an error of its own.
const FIELDS: [&str; 3] = ["role", "backend", "prefix"];

/// `operator on cache, for tenant_1:`, one line for each grant.
pub(super) fn grant_list(grants: &[Grant]) -> AnyView {
    if grants.is_empty() {
        return view! { <span class="ink3">"nothing"</span> }.into_any();
    }
    let lines = grants.iter().map(|grant| {
        let backend = grant
            .backend
            .as_ref()
            .map(|name| view! { <span class="ink2">" on "</span>{name.to_string()} }.into_any());
        let prefix = grant.prefix.as_deref().map(|prefix| {
            view! { <span class="ink2">" for "</span><bdi class="mono">{visible(prefix).into_owned()}</bdi> }
                .into_any()
        });
        view! { <li>{grant.role.as_str()}{backend}{prefix}</li> }.into_any()
    });
    view! { <ul class="may">{lines.collect_view()}</ul> }.into_any()
}

/// Values of the fields of one row.
#[derive(Clone, Default)]
struct GrantInput {
    role: String,
    backend: String,
    prefix: String,
}

impl From<&Grant> for GrantInput {
    fn from(grant: &Grant) -> Self {
        let backend = grant.backend.as_ref().map(ToString::to_string);
        Self {
            role: grant.role.as_str().to_owned(),
            backend: backend.unwrap_or_default(),
            prefix: grant.prefix.clone().unwrap_or_default(),
        }
    }
}

/// Rows as they were typed into a form that was refused without a script.
fn typed_rows(form: FormState) -> Option<Vec<GrantInput>> {
    let fields = untrack(|| form.reply())?.fields.fields;
    let all = |name: &'static str| {
        let values = fields.iter().filter(move |(field, _)| field == name);
        values.map(|(_, value)| value.clone())
    };
    let rows = all("role").zip(all("backend")).zip(all("prefix"));
    let rows = rows.map(|((role, backend), prefix)| GrantInput {
        role,
        backend,
        prefix,
    });
    // A refused form may have had none.
    Some(rows.collect()).filter(|rows: &Vec<GrantInput>| !rows.is_empty())
}

/// Rows for these grants, and spare ones.
#[component]
pub fn GrantRows(grants: Vec<Grant>, backends: Vec<String>) -> impl IntoView {
    let mut rows: Vec<GrantInput> = grants.iter().map(GrantInput::from).collect();
    rows.resize_with(grants.len() + SPARE_ROWS, GrantInput::default);
    field(rows, &backends)
}

/// One row, for a new user or token.
#[component]
pub fn GrantRow(role: Role, backends: Vec<String>) -> impl IntoView {
    field(vec![GrantInput::from(&Grant::everywhere(role))], &backends)
}

fn field(rows: Vec<GrantInput>, backends: &[String]) -> AnyView {
    let form = use_form();
    let rows = typed_rows(form).unwrap_or(rows);
    let rows = rows
        .iter()
        .enumerate()
        .map(|(index, input)| row(index + 1, input, backends));
    let fault = Memo::new(move |_| FIELDS.into_iter().find_map(|name| form.fault(name)));
    let note = move || match fault.get() {
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

/// `number` distinguishes rows in labels.
fn row(number: usize, input: &GrantInput, backends: &[String]) -> AnyView {
    let mut roles = vec![(NO_ROLE.to_owned(), "no role".to_owned())];
    roles.extend(Role::ALL.map(|role| (role.as_str().to_owned(), role.as_str().to_owned())));
    let mut choices = vec![(String::new(), "every backend".to_owned())];
    choices.extend(backends.iter().map(|name| (name.clone(), name.clone())));
    // A backend that is no longer configured is still part of the grant.
    if !input.backend.is_empty() && !backends.contains(&input.backend) {
        choices.push((
            input.backend.clone(),
            format!("{}, not configured", input.backend),
        ));
    }
    view! {
        <div class="grant">
            <select name="role" aria-label=format!("role {number}")>{options_view(roles, &input.role)}</select>
            <select name="backend" aria-label=format!("backend of role {number}")>{options_view(choices, &input.backend)}</select>
            <input name="prefix" value=input.prefix.clone() placeholder="every prefix" aria-label=format!("prefix of role {number}")
                spellcheck="false" autocapitalize="none" autocomplete="off"/>
        </div>
    }
    .into_any()
}
