//! Filters of the alerts page: chips and selects in the URL. Chips are links, and the selects a
//! form, so that both work without a script.

use domain::alerts::AlertSeverity;
use domain::escape::visible;
use leptos::ev::Event;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;
use wasm_bindgen::JsCast;
use web_sys::{HtmlFormElement, HtmlInputElement, HtmlSelectElement};

use crate::components::reactive::changing;
use crate::components::state_badge::Shape;
use crate::forms::field::options_view;
use crate::pages::alerts::alert_filter::{AlertFilter, PATH};
use crate::pages::alerts::data::{AlertsData, GroupState};

#[component]
pub(super) fn Filters(data: Signal<AlertsData>, filter: Memo<AlertFilter>) -> impl IntoView {
    let states = GroupState::ALL
        .into_iter()
        .enumerate()
        .map(|(at, state)| state_chip(data, filter, at, state));
    let severities = [
        AlertSeverity::Critical,
        AlertSeverity::Warning,
        AlertSeverity::Info,
    ];
    let severities = severities
        .into_iter()
        .enumerate()
        .map(|(at, severity)| severity_chip(data, filter, at, severity));
    view! {
        <div class="al-filters" role="group" aria-label="filters">
            <span class="al-facet"><span class="small ink3">"state"</span>{states.collect_view()}</span>
            <span class="al-facet"><span class="small ink3">"severity"</span>{severities.collect_view()}</span>
            <Selects data filter/>
        </div>
    }
    .into_any()
}

pub(super) const fn shape(state: GroupState) -> &'static str {
    match state {
        GroupState::Firing => "not_renewing",
        GroupState::Acknowledged | GroupState::Resolved => "ok",
        GroupState::Pending => "pending",
        GroupState::Flapping => "contended",
        GroupState::Silenced => "mute",
    }
}

pub(super) const fn hue(severity: AlertSeverity) -> &'static str {
    match severity {
        AlertSeverity::Critical => "critical",
        AlertSeverity::Warning => "warning",
        AlertSeverity::Info => "quiet",
    }
}

fn state_chip(data: Signal<AlertsData>, filter: Memo<AlertFilter>, at: usize, state: GroupState) -> AnyView {
    let href = move || filter.with(|filter| filter.toggled(state).url());
    let is_on = move || filter.with(|filter| filter.shows(state)).then_some("true");
    let count = move || data.with(|data| data.states[at]);
    view! {
        <a class="fchip" href=href aria-current=is_on><Shape name=shape(state)/>{state.as_str()}" "<b>{changing(count)}</b></a>
    }
    .into_any()
}

fn severity_chip(
    data: Signal<AlertsData>,
    filter: Memo<AlertFilter>,
    at: usize,
    severity: AlertSeverity,
) -> AnyView {
    let href = move || filter.with(|filter| filter.toggled_severity(severity).url());
    let is_on = move || {
        filter
            .with(|filter| filter.severities.contains(&severity))
            .then_some("true")
    };
    let count = move || data.with(|data| data.severities[at]);
    let class = format!("fchip {}", hue(severity));
    view! {
        <a class=class href=href aria-current=is_on><Shape name="not_renewing"/>{severity.as_str()}" "<b>{changing(count)}</b></a>
    }
    .into_any()
}

#[component]
fn Selects(data: Signal<AlertsData>, filter: Memo<AlertFilter>) -> impl IntoView {
    let navigate = use_navigate();
    let apply = move |event: Event| {
        if let Some(form) = event.current_target().and_then(form_of) {
            let next = filter.with_untracked(|filter| filter_from_form(&form, filter));
            navigate(
                &next.url(),
                NavigateOptions {
                    scroll: false,
                    ..NavigateOptions::default()
                },
            );
        }
    };
    let (on_change, on_submit) = (apply.clone(), apply);
    // Without a script the form repeats the chips.
    let hidden = move || {
        filter.with(|filter| {
            let pairs = filter.pairs().into_iter();
            let chips = pairs.filter(|(name, _)| matches!(*name, "state" | "severity"));
            chips
                .map(|(name, value)| view! { <input r#type="hidden" name=name value=value/> }.into_any())
                .collect_view()
        })
    };
    let select = move |name: &'static str,
                       all: &'static str,
                       choices: fn(&AlertsData) -> Vec<(String, String)>,
                       chosen: fn(&AlertFilter) -> &String| {
        let options = Memo::new(move |_| {
            let chosen = filter.with(|filter| chosen(filter).clone());
            let mut options = vec![(String::new(), all.to_owned())];
            options.extend(data.with(choices));
            // The selected value stays in the list, also if no alert has it now.
            if !options.iter().any(|(value, _)| *value == chosen) {
                options.push((chosen.clone(), chosen.clone()));
            }
            (options, chosen)
        });
        view! {
            <label class="fselect"><span>{name}</span>
                <select name=name>{changing(move || options.with(|(options, chosen)| options_view(options.clone(), chosen)))}</select></label>
        }
        .into_any()
    };
    view! {
        <form class="al-selects" method="get" action=PATH on:change=on_change
            on:submit=move |event| { event.prevent_default(); on_submit(event.into()); }>
            {changing(hidden)}
            {select("rule", "any", |data| data.rules.clone(), |filter| &filter.rule)}
            {select("backend", "all", |data| data.backends.iter().map(|value| value_and_label(value)).collect(), |filter| &filter.backend)}
            {select("prefix", "any", |data| data.prefixes.iter().map(|value| value_and_label(value)).collect(), |filter| &filter.prefix)}
            <label class="fselect"><span class="sr">"Find in alerts"</span>
                <input r#type="search" name="q" placeholder="Find in alerts" data-search="alerts" autocomplete="off" spellcheck="false"
                    value=move || filter.with(|filter| filter.q.clone())/></label>
            <button class="btn s no-script" r#type="submit">"Apply"</button>
        </form>
    }
    .into_any()
}

fn value_and_label(value: &str) -> (String, String) {
    (value.to_owned(), visible(value).into_owned())
}

fn form_of(target: web_sys::EventTarget) -> Option<HtmlFormElement> {
    target.dyn_into().ok()
}

/// The filter with the values of the form.
fn filter_from_form(form: &HtmlFormElement, filter: &AlertFilter) -> AlertFilter {
    let field = |name: &str| form.query_selector(&format!("[name={name}]")).ok().flatten();
    let select = |name: &str| {
        let select = field(name)?.dyn_into::<HtmlSelectElement>().ok()?;
        Some(select.value())
    };
    let q = field("q").and_then(|field| field.dyn_into::<HtmlInputElement>().ok());
    AlertFilter {
        rule: select("rule").unwrap_or_default(),
        backend: select("backend").unwrap_or_default(),
        prefix: select("prefix").unwrap_or_default(),
        q: q.map(|field| field.value().trim().to_owned()).unwrap_or_default(),
        ..filter.clone()
    }
}
