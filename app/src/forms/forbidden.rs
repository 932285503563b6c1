//! What stands on a page that somebody may not open.

use leptos::prelude::*;

/// `right` is the word of the missing right.
pub fn forbidden(right: &str) -> AnyView {
    let right = right.replace('_', " ");
    view! {
        <section class="empty">
            <p>"It needs the right \u{201c}"{right}"\u{201d}. An admin gives it, under Settings, People; what you may do stands under Settings, You."</p>
            <p class="do"><a class="btn" href="/">"Overview"</a><a class="btn" href="/settings">"What I may do"</a></p>
        </section>
    }
    .into_any()
}
