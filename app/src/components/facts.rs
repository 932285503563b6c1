//! The row of facts of one lock: a label, the value, and what explains it. A value that is not known says so.

use domain::known::Known;
use leptos::prelude::*;

#[component]
pub fn Facts(children: Children) -> impl IntoView {
    view! { <dl class="facts">{children()}</dl> }
}

#[component]
pub fn Fact(
    label: &'static str,
    /// The line below the value.
    #[prop(optional, into)]
    note: Option<AnyView>,
    children: Children,
) -> impl IntoView {
    view! {
        <div>
            <dt>{label}</dt>
            <dd>{children()} {note.map(|note| view! { <small>{note}</small> })}</dd>
        </div>
    }
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
