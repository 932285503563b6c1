//! The row of facts of one lock: a label, the value, and what explains it. A value that is not known says so.

use domain::known::Known;
use leptos::prelude::*;

/// Label and value; a line in `<small>` inside the value explains it.
#[component]
pub fn Facts(cells: Vec<(&'static str, AnyView)>) -> impl IntoView {
    let cells = cells
        .into_iter()
        .map(|(label, value)| view! { <div><dt>{label}</dt><dd>{value}</dd></div> }.into_any());
    view! { <dl class="facts">{cells.collect_view()}</dl> }
}

/// A value, or the word for why there is none with the reason below it: never a blank, never a zero.
pub fn known_or_why<T>(value: &Known<T>, show: impl FnOnce(&T) -> AnyView) -> AnyView {
    match value {
        Known::Known(value) => show(value),
        Known::Unknown(why) => missing("unknown", why),
        Known::Absent(why) => missing("none", why),
    }
}

fn missing(word: &'static str, why: &str) -> AnyView {
    let why = why.to_owned();
    view! { <span class="none">{word}</span><small>{why}</small> }.into_any()
}
