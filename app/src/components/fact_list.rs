//! Fact row of one lock: label, value, explanation. Unknown values are named as such.

use domain::reported::Reported;
use leptos::prelude::*;

/// Label and value; `<small>` inside the value explains it.
#[component]
pub fn Facts(cells: Vec<(&'static str, AnyView)>) -> impl IntoView {
    let cells = cells
        .into_iter()
        .map(|(label, value)| view! { <div><dt>{label}</dt><dd>{value}</dd></div> }.into_any());
    view! { <dl class="facts">{cells.collect_view()}</dl> }
}

/// A value, or the label for its absence with the reason below: never blank, never zero.
pub fn known_or_why<T>(value: &Reported<T>, show: impl FnOnce(&T) -> AnyView) -> AnyView {
    match value {
        Reported::Value(value) => show(value),
        Reported::Unknown(why) => missing_value("unknown", why),
        Reported::NotApplicable(why) => missing_value("none", why),
    }
}

fn missing_value(label: &'static str, why: &str) -> AnyView {
    let why = why.to_owned();
    view! { <span class="none">{label}</span><small>{why}</small> }.into_any()
}
