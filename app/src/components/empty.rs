//! Nothing to show, said in words with what to do about it.

use leptos::prelude::*;

#[component]
pub fn Empty(#[prop(into)] title: String, children: Children) -> impl IntoView {
    view! { <section class="empty"><h2>{title}</h2>{children()}</section> }
}
