//! The navigation of a phone: four pages under the thumb, and the others behind `More`.

use leptos::prelude::*;

use super::nav::{Here, Place};

/// Pages of the server's alone, as a text; see the bar's. Opened by the browser itself, before any script.
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
            <a href="/" aria-current=here.is(Place::Overview)>"Overview"</a>
            <a href="/locks" aria-current=here.is(Place::Locks)>"Locks"</a>
            <a href="/backends" aria-current=here.is(Place::Backends)>"Backends"</a>
            <div inner_html=REST></div>
        </nav>
    }
}
