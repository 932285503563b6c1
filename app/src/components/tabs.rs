//! The navigation of a phone.

use leptos::prelude::*;

use super::nav::{Here, Place};

#[component]
pub fn Tabs() -> impl IntoView {
    let here = Here::now();
    view! {
        <nav class="tabs" aria-label="pages">
            <a href="/" aria-current=here.is(Place::Overview)>"Overview"</a>
            <a href="/locks" aria-current=here.is(Place::Locks)>"Locks"</a>
            <a href="/backends" aria-current=here.is(Place::Backends)>"Backends"</a>
            <a href="/alerts" rel="external">"Alerts"</a>
            <a href="/audit" rel="external" class="may-audit">"Audit"</a>
            <a href="/settings" rel="external">"Settings"</a>
        </nav>
    }
}
