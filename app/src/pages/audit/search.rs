//! Filter form of the audit log. Its state is the URL.

use domain::audit::{Action, AuditQuery};
use domain::escape::visible;
use leptos::prelude::*;

use super::PATH;
use crate::components::reactive::changing;
use crate::forms::field::options_view;
use crate::forms::filter_form::FilterForm;
use crate::pages::audit::data::{AuditData, AuditFilters};

const OUTCOMES: [&str; 14] = [
    "ok",
    "released",
    "already_free",
    "holder_changed",
    "outcome_unknown",
    "refused",
    "expired",
    "cancelled",
    "pending",
    "approved",
    "reviewed",
    "forbidden",
    "wrong_password",
    "name_mismatch",
];

impl AuditFilters {
    /// The filters as URL parameters.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let values: [&str; 8] = [
            &self.actor,
            &self.backend,
            &self.prefix,
            &self.action,
            &self.outcome,
            &self.unlock_id,
            &self.from,
            &self.to,
        ];
        let pairs = AuditQuery::FILTERS.into_iter().zip(values);
        pairs.filter(|(_, value)| !value.is_empty())
    }

    fn fault(&self, field: &str) -> Option<String> {
        let fault = self.fault.as_ref().filter(|(name, _)| name == field);
        fault.map(|(_, why)| why.clone())
    }
}

/// Created again only when the filters in the URL change, so that other updates keep what is being typed.
#[component]
pub fn Search(data: Signal<AuditData>) -> impl IntoView {
    let shown = Memo::new(move |_| data.with(|data| (data.filters.clone(), data.backends.clone())));
    changing(move || shown.with(|(filters, backends)| form(filters, backends)))
}

fn form(filters: &AuditFilters, backends: &[String]) -> AnyView {
    let mut choices = vec![(String::new(), "every backend".to_owned())];
    choices.extend(backends.iter().map(|name| (name.clone(), name.clone())));
    if !filters.backend.is_empty() && !backends.contains(&filters.backend) {
        let name = visible(&filters.backend).into_owned();
        choices.push((filters.backend.clone(), format!("{name}, not configured")));
    }
    let mut actions = vec![(String::new(), "every action".to_owned())];
    actions.extend(Action::ALL.map(|action| (action.as_str().to_owned(), action.label().to_owned())));
    let fault = filters.fault.as_ref();
    let general = fault.filter(|(name, _)| !AuditQuery::FILTERS.contains(&name.as_str()));
    let general =
        general.map(|(name, why)| view! { <p class="fault">{format!("{name} {why}")}</p> }.into_any());
    let is_filtered = filters.pairs().next().is_some();
    let clear = is_filtered.then(|| view! { <a class="btn plain" href=PATH>"Clear"</a> }.into_any());
    let fields = vec![
        text(filters, "actor", "Actor, name or id", &filters.actor),
        text(filters, "prefix", "Resource begins with", &filters.prefix),
        choice("backend", "Backend", choices, &filters.backend),
        choice("action", "Action", actions, &filters.action),
        outcome(filters),
        text(filters, "unlockId", "Unlock id", &filters.unlock_id),
        time(filters, "from", "From, UTC", &filters.from),
        time(filters, "to", "Until, UTC", &filters.to),
    ];
    view! {
        <FilterForm class="audit-search" action=PATH label="audit log">
            {fields}
            {general}
            <div class="do"><button class="btn solid" r#type="submit">"Search"</button>{clear}</div>
        </FilterForm>
    }
    .into_any()
}

struct Input<'a> {
    name: &'static str,
    label: &'static str,
    value: &'a str,
    kind: &'static str,
    list: Option<&'static str>,
    fault: Option<String>,
}

fn input(of: Input<'_>) -> AnyView {
    let note = format!("{}-note", of.name);
    let is_invalid = of.fault.is_some().then_some("true");
    let described = of.fault.is_some().then(|| note.clone());
    let fault = of
        .fault
        .map(|why| view! { <p class="fault" id=note>{why}</p> }.into_any());
    view! {
        <div class="entry">
            <label for=of.name>{of.label}</label>
            <input id=of.name name=of.name r#type=of.kind step="any" list=of.list value=of.value.to_owned() autocomplete="off"
                spellcheck="false" autocapitalize="none" aria-invalid=is_invalid aria-describedby=described/>
            {fault}
        </div>
    }
    .into_any()
}

fn text(filters: &AuditFilters, name: &'static str, label: &'static str, value: &str) -> AnyView {
    input(Input {
        name,
        label,
        value,
        kind: "text",
        list: None,
        fault: filters.fault(name),
    })
}

fn time(filters: &AuditFilters, name: &'static str, label: &'static str, value: &str) -> AnyView {
    let fault = filters.fault(name);
    // A browser hides an invalid time: a text field shows it for correction.
    let kind = if fault.is_some() { "text" } else { "datetime-local" };
    input(Input {
        name,
        label,
        value,
        kind,
        list: None,
        fault,
    })
}

fn outcome(filters: &AuditFilters) -> AnyView {
    let field = input(Input {
        name: "outcome",
        label: "Outcome",
        value: &filters.outcome,
        kind: "text",
        list: Some("outcomes"),
        fault: filters.fault("outcome"),
    });
    let options = OUTCOMES.map(|outcome| view! { <option value=outcome></option> }.into_any());
    view! { {field}<datalist id="outcomes">{options.collect_view()}</datalist> }.into_any()
}

fn choice(name: &'static str, label: &'static str, options: Vec<(String, String)>, chosen: &str) -> AnyView {
    view! {
        <div class="entry">
            <label for=name>{label}</label>
            <select id=name name=name>{options_view(options, chosen)}</select>
        </div>
    }
    .into_any()
}
