//! A form of filters: its values are the page's query string. With a script the page stays open
//! and navigates without a reload.

use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use leptos_router::hooks::use_navigate;
use wasm_bindgen::JsCast;
use web_sys::{FormData, HtmlFormElement, UrlSearchParams};

use crate::links;

#[component]
pub fn FilterForm(
    /// Path of the page.
    action: &'static str,
    class: &'static str,
    /// Accessible name.
    label: &'static str,
    children: Children,
) -> impl IntoView {
    let navigate = use_navigate();
    let submit = move |event: SubmitEvent| {
        if let Some(query) = query_of(&event) {
            event.prevent_default();
            // Fields without a value are not filters.
            let pairs = links::pairs(&query);
            let pairs = pairs.iter().filter(|(_, value)| !value.is_empty());
            let pairs = pairs.map(|(name, value)| (name.as_str(), value.as_str()));
            navigate(&links::with_query(action, pairs), Default::default());
        }
    };
    view! {
        <form class=class method="get" action=action role="search" aria-label=label on:submit=submit>{children()}</form>
    }
    .into_any()
}

fn query_of(event: &SubmitEvent) -> Option<String> {
    let form: HtmlFormElement = event.target()?.dyn_into().ok()?;
    let data = FormData::new_with_form(&form).ok()?;
    let query = UrlSearchParams::new_with_str_sequence_sequence(&data).ok()?;
    Some(query.to_string().into())
}
