//! Search for a lock or an owner from any page. A plain form that works before the script
//! loads.

use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use leptos_router::hooks::use_navigate;
use wasm_bindgen::JsCast;
use web_sys::{FormData, HtmlFormElement};

use crate::links;

#[component]
pub fn SearchBox() -> impl IntoView {
    let navigate = use_navigate();
    // Not the router's form component, which would add much wasm.
    let submit = move |event: SubmitEvent| {
        if let Some(text) = search_text(&event) {
            event.prevent_default();
            navigate(&links::with_query("/locks", [("q", text)]), Default::default());
        }
    };
    view! {
        <div role="search" aria-label="everything">
            <form method="get" action="/locks" on:submit=submit>
                <label class="find">
                    <span class="sr">"Find a lock or owner"</span>
                    <input type="search" name="q" placeholder="Find a lock or owner" autocomplete="off" spellcheck="false" data-search="nav"/>
                    <kbd aria-hidden="true">"/"</kbd>
                </label>
            </form>
        </div>
    }
}

fn search_text(event: &SubmitEvent) -> Option<String> {
    let form: HtmlFormElement = event.target()?.dyn_into().ok()?;
    FormData::new_with_form(&form).ok()?.get("q").as_string()
}
