//! Number of locks per state, as links that toggle the state filter.

use domain::format;
use domain::state::{LockState, StateCounts};
use leptos::prelude::*;

use super::url_state::Address;
use crate::components::state_badge::StateBadge;

#[component]
pub fn Facets(states: Signal<StateCounts>, address: Memo<Address>) -> impl IntoView {
    let shown = move || {
        let chosen = address.get();
        let counts = states.get();
        LockState::ALL
            .into_iter()
            .filter(move |state| counts.count(*state) > 0 || chosen.has("state", state.as_str()))
    };
    let any = move || address.with(|address| !address.first("state").is_empty());
    view! {
        <nav class="facets" aria-label="filter by state">
            {move || (any() || states.get().total() > 0).then(|| view! { <span class="small ink3 fl">"state"</span> }.into_any())}
            {move || shown().map(|state| view! {
                <a
                    class="fc"
                    href=address.get().toggled("state", state.as_str()).href()
                    aria-current=address.get().has("state", state.as_str()).then_some("true")
                >
                    <StateBadge state small=true/>
                    <b>{format::count(states.get().count(state))}</b>
                </a>
            }.into_any()).collect_view()}
            {move || any().then(|| view! { <a class="fc link small" href=address.get().with("state", "").href()>"any state"</a> }.into_any())}
        </nav>
    }
}
