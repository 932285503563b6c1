//! A page whose content could not be read or does not exist.

use leptos::prelude::*;

/// `why` is one sentence; `back` is the path and the name of the parent page.
pub fn failed(why: &str, back: (&'static str, &'static str)) -> AnyView {
    let (path, name) = back;
    let why = why.to_owned();
    view! {
        <section class="empty">
            <p>{why}</p>
            <p class="do"><a class="btn" href=path>{name}</a></p>
        </section>
    }
    .into_any()
}
