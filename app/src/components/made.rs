//! A part of a page that the server made as one string: the browser shows it as it is, and needs no code for it.

use leptos::prelude::*;

/// `html` is escaped by whoever made it: see `charts::markup`.
#[component]
pub fn Made(html: impl Fn() -> String + Send + Sync + 'static) -> impl IntoView {
    // What has not changed stays as it is, with the focus in it.
    let html = Memo::new(move |_| html());
    view! { <div class="made" inner_html=move || html.get()></div> }.into_any()
}
