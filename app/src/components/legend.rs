//! Legend of the expiry bar: lists only what is drawn.

use leptos::prelude::*;

#[component]
pub fn ExpiryBarLegend() -> impl IntoView {
    view! {
        <p class="legend">
            <span>"How to read the time left:"</span>
            <span>
                <svg class="wide" viewBox="0 0 28 12" aria-hidden="true"><rect y="3" width="28" height="6" fill="var(--track)"></rect><rect y="3" width="19" height="6" fill="var(--healthy-fill)"></rect></svg>
                "time left of the TTL"
            </span>
            <span>
                <svg viewBox="0 0 16 12" aria-hidden="true"><path d="M8 0v12" stroke="var(--ink-2)"></path></svg>
                "past renewals"
            </span>
            <span>
                <svg viewBox="0 0 16 12" aria-hidden="true"><path d="M4 9h8L8 3z" fill="var(--ink-3)"></path></svg>
                "near expiry below here"
            </span>
            <span>
                <svg class="wide" viewBox="0 0 28 12" aria-hidden="true"><rect x=".5" y="2.5" width="27" height="7" fill="url(#hatch-dense)" stroke="var(--control)"></rect></svg>
                "stale: at most this much"
            </span>
            <span>
                <svg class="wide" viewBox="0 0 28 12" aria-hidden="true"><rect x=".5" y="2.5" width="27" height="7" fill="none" stroke="var(--control)" stroke-dasharray="3 3"></rect></svg>
                "unknown"
            </span>
        </p>
    }
}
