//! Filter form of the audit log. The state is the URL: a GET form.

use domain::audit::{Action, AuditQuery};
use leptos::prelude::*;

use crate::server_pages::field::{Field, choice};

/// The fields as entered, valid or not.
#[derive(Debug, Clone, Default)]
pub struct Search {
    pub actor: String,
    pub backend: String,
    pub prefix: String,
    pub action: String,
    pub outcome: String,
    pub unlock_id: String,
    /// Format of the browser's time field, in UTC.
    pub from: String,
    pub to: String,
    /// Names of backends to choose from.
    pub backends: Vec<String>,
    /// The invalid field and its error.
    pub fault: Option<(String, String)>,
}

const OUTCOMES: [&str; 12] = [
    "ok",
    "released",
    "already_free",
    "holder_changed",
    "outcome_unknown",
    "refused",
    "pending",
    "approved",
    "reviewed",
    "forbidden",
    "wrong_password",
    "name_mismatch",
];

impl Search {
    /// The filters as URL parameters.
    pub(super) fn filters(&self) -> Vec<(&'static str, &str)> {
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
        pairs.filter(|(_, value)| !value.is_empty()).collect()
    }

    fn fault_of(&self, field: &str) -> Option<String> {
        let fault = self.fault.as_ref().filter(|(name, _)| name == field);
        fault.map(|(_, why)| why.clone())
    }

    fn text(&self, name: &'static str, label: &'static str, value: &str) -> AnyView {
        let field = Field {
            is_required: false,
            fault: self.fault_of(name),
            ..Field::text(name, label, value.to_owned())
        };
        field.view()
    }

    fn time(&self, name: &'static str, label: &'static str, value: &str) -> AnyView {
        let fault = self.fault_of(name);
        let is_bad = fault.is_some().then_some("true");
        let note = format!("{name}-note");
        let described = fault.is_some().then(|| note.clone());
        // A browser hides an invalid time: a text field shows it for correction.
        let kind = if fault.is_some() { "text" } else { "datetime-local" };
        let fault = fault.map(|why| view! { <p class="fault" id=note>{why}</p> });
        view! {
            <div class="entry">
                <label for=name>{label}</label>
                <input id=name name=name r#type=kind step="any" value=value.to_owned()
                    aria-invalid=is_bad aria-describedby=described/>
                {fault}
            </div>
        }
        .into_any()
    }

    fn outcome(&self) -> AnyView {
        let fault = self.fault_of("outcome");
        let is_bad = fault.is_some().then_some("true");
        let described = fault.is_some().then_some("outcome-note");
        let fault = fault.map(|why| view! { <p class="fault" id="outcome-note">{why}</p> });
        let words = OUTCOMES.map(|word| view! { <option value=word></option> });
        view! {
            <div class="entry">
                <label for="outcome">"Outcome"</label>
                <input id="outcome" name="outcome" r#type="text" list="outcomes" value=self.outcome.clone() autocomplete="off"
                    spellcheck="false" autocapitalize="none" aria-invalid=is_bad aria-describedby=described/>
                <datalist id="outcomes">{words.collect_view()}</datalist>
                {fault}
            </div>
        }
        .into_any()
    }

    pub(super) fn view(&self) -> AnyView {
        let mut backends = vec![(String::new(), "every backend".to_owned())];
        backends.extend(self.backends.iter().map(|name| (name.clone(), name.clone())));
        if !self.backend.is_empty() && !self.backends.contains(&self.backend) {
            let word = domain::escape::visible(&self.backend).into_owned();
            backends.push((self.backend.clone(), format!("{word}, not configured")));
        }
        let mut actions = vec![(String::new(), "every action".to_owned())];
        actions.extend(Action::ALL.map(|action| (action.as_str().to_owned(), action.word().to_owned())));
        let general = self
            .fault
            .as_ref()
            .filter(|(name, _)| !AuditQuery::FILTERS.contains(&name.as_str()));
        let general = general.map(|(name, why)| view! { <p class="fault">{format!("{name} {why}")}</p> });
        let clear =
            (!self.filters().is_empty()).then(|| view! { <a class="btn plain" href="/audit">"Clear"</a> });
        view! {
            <form class="audit-search" method="get" action="/audit" role="search" aria-label="audit log">
                {self.text("actor", "Actor, name or id", &self.actor)}
                {self.text("prefix", "Resource begins with", &self.prefix)}
                {choice("backend", "Backend", backends, &self.backend)}
                {choice("action", "Action", actions, &self.action)}
                {self.outcome()}
                {self.text("unlockId", "Unlock id", &self.unlock_id)}
                {self.time("from", "From, UTC", &self.from)}
                {self.time("to", "Until, UTC", &self.to)}
                {general}
                <div class="do"><button class="btn solid" r#type="submit">"Search"</button>{clear}</div>
            </form>
        }
        .into_any()
    }
}
