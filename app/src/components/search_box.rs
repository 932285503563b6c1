//! Finds a lock or an owner from any page. A plain form: it works before the script arrives.

use leptos::prelude::*;
use leptos_router::components::Form;

#[component]
pub fn SearchBox() -> impl IntoView {
    view! {
        <div role="search" aria-label="everything">
            <Form method="get" action="/locks">
                <label class="find">
                    <span class="sr">"Find a lock or owner"</span>
                    <input type="search" name="q" placeholder="Find a lock or owner" autocomplete="off" spellcheck="false" data-search="nav"/>
                    <kbd aria-hidden="true">"/"</kbd>
                </label>
            </Form>
        </div>
    }
}
