//! A part of a page as one server-rendered string: inserted as it is, without browser code.

use leptos::prelude::*;

/// `html` must be escaped: see `charts::html_writer`.
#[component]
pub fn Made(html: impl Fn() -> String + Send + Sync + 'static) -> impl IntoView {
    // Unchanged HTML stays in the document, with the focus inside it.
    let html = Memo::new(move |_| html());
    view! { <div class="made" inner_html=move || html.get()></div> }.into_any()
}
