//! Bottom navigation of a phone: four pages, the others behind `More`.

use leptos::prelude::*;

use super::nav::{Here, NavItem};

/// Server pages, as a constant text (see `nav.rs`). Opened without script.
const REST: &str = "<a href=\"/alerts\" rel=\"external\">Alerts</a>\
    <button type=\"button\" popovertarget=\"more\">More</button>\
    <div popover id=\"more\">\
    <a href=\"/contention\" rel=\"external\">Contention</a>\
    <a href=\"/fencing\" rel=\"external\">Fencing</a>\
    <a href=\"/audit\" rel=\"external\" class=\"may-audit\">Audit</a>\
    <a href=\"/settings\" rel=\"external\">Settings</a>\
    <a href=\"/docs\" rel=\"external\">Docs</a>\
    </div>";

#[component]
pub fn Tabs() -> impl IntoView {
    let here = Here::now();
    view! {
        <nav class="tabs" aria-label="pages">
            <a href="/" aria-current=here.is(NavItem::Overview)>"Overview"</a>
            <a href="/locks" aria-current=here.is(NavItem::Locks)>"Locks"</a>
            <a href="/backends" aria-current=here.is(NavItem::Backends)>"Backends"</a>
            <div inner_html=REST></div>
        </nav>
    }
}
