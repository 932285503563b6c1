//! Content of a page that the user may not open.

use leptos::prelude::*;

/// `right` is the label of the missing permission.
pub fn forbidden(right: &str) -> AnyView {
    let right = right.replace('_', " ");
    view! {
        <section class="empty">
            <p>"It needs the permission \u{201c}"{right}"\u{201d}. An admin can grant it under Settings, Users; your roles are under Settings, You."</p>
            <p class="do"><a class="btn" href="/">"Overview"</a><a class="btn" href="/settings">"My roles"</a></p>
        </section>
    }
    .into_any()
}
