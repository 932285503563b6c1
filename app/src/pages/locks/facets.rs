//! How many locks are in each state: links that narrow the list, and widen it again.

use domain::human;
use domain::state::{LockState, StateCounts};
use leptos::prelude::*;

use super::address::Address;
use crate::components::state_badge::StateBadge;

#[component]
pub fn Facets(states: Signal<StateCounts>, address: Memo<Address>) -> impl IntoView {
    let shown = move || {
        let chosen = address.get();
        let counts = states.get();
        LockState::ALL
            .into_iter()
            .filter(move |state| counts.of(*state) > 0 || chosen.has("state", state.wire()))
    };
    let any = move || address.with(|address| !address.first("state").is_empty());
    view! {
        <nav class="facets" aria-label="filter by state">
            {move || (any() || states.get().total() > 0).then(|| view! { <span class="small ink3 fl">"state"</span> }.into_any())}
            {move || shown().map(|state| view! {
                <a
                    class="fc"
                    href=address.get().toggled("state", state.wire()).href()
                    aria-current=address.get().has("state", state.wire()).then_some("true")
                >
                    <StateBadge state small=true/>
                    <b>{human::count(states.get().of(state))}</b>
                </a>
            }.into_any()).collect_view()}
            {move || any().then(|| view! { <a class="fc link small" href=address.get().with("state", "").href()>"any state"</a> }.into_any())}
        </nav>
    }
}
