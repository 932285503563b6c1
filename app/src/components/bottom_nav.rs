//! Bottom navigation of a phone: the tabs of the navigation table, the others behind `More`.

use leptos::prelude::*;

use super::nav::{CurrentPage, nav_link};
use crate::pages::PAGES;

#[component]
pub fn Tabs() -> impl IntoView {
    let current_page = CurrentPage::now();
    let links = |is_tab: bool| {
        let of_kind = PAGES.iter().filter(|entry| entry.is_tab == is_tab);
        of_kind
            .map(|entry| nav_link(entry, current_page, false))
            .collect_view()
    };
    view! {
        <nav class="tabs" aria-label="pages, below">
            {links(true)}
            <button type="button" popovertarget="more">"More"</button>
            // Opened without a script.
            <div popover id="more">{links(false)}</div>
        </nav>
    }
    .into_any()
}
