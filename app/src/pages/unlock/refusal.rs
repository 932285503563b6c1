//! A refused step: the message of its form at the top of the page, because the form may be gone;
//! with both holders where the lock has another one.

use leptos::context::Provider;
use leptos::prelude::*;

use super::parts::{holders_table, name};
use crate::components::reactive::changing;
use crate::forms::console_form::{FormAlert, FormState};
use crate::forms::reply::FormReply;

/// Names of the reply's values: owner, token and lease, as reviewed and now. Empty: none.
pub const HOLDER_VALUES: [[&str; 2]; 3] = [
    ["owner_before", "owner_now"],
    ["token_before", "token_now"],
    ["lease_before", "lease_now"],
];

/// A value of [`HOLDER_VALUES`] for a reply.
pub fn holder_value(name: &str, value: String) -> (String, String) {
    (name.to_owned(), value)
}

#[component]
pub fn Refusal(state: FormState) -> impl IntoView {
    let holders = Memo::new(move |_| state.reply().and_then(|reply| holders(&reply)));
    view! {
        <Provider value=state>
            <FormAlert/>
        </Provider>
        {changing(move || holders.get().map(|holders| {
            let cells = holders.map(|row| row.map(|text| cell(&text)));
            view! { <div class="notice refusal">{holders_table(["reviewed", "now"], cells)}</div> }.into_any()
        }))}
    }
    .into_any()
}

fn cell(text: &str) -> AnyView {
    if text.is_empty() {
        return view! { <span class="ink3">"none"</span> }.into_any();
    }
    name(text)
}

fn holders(reply: &FormReply) -> Option<[[String; 2]; 3]> {
    reply.value(HOLDER_VALUES[0][0])?;
    let value = |name| reply.value(name).unwrap_or_default().to_owned();
    Some(HOLDER_VALUES.map(|row| row.map(value)))
}

/// Whether the form was refused as a whole; tracked.
pub(super) fn is_refused(state: FormState) -> bool {
    state.reply().is_some_and(|reply| reply.alert.is_some())
}
