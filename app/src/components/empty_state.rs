//! Empty state: a sentence and what to do next.

use leptos::prelude::*;

#[component]
pub fn Empty(
    #[prop(into)] title: String,
    /// It is the page's only content, so its title is the page's heading.
    #[prop(optional)]
    whole: bool,
    children: Children,
) -> impl IntoView {
    let title = if whole {
        view! { <h1>{title}</h1> }.into_any()
    } else {
        view! { <h2>{title}</h2> }.into_any()
    };
    view! { <section class="empty">{title}{children()}</section> }
}
