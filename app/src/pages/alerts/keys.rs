//! Keys of the alerts page: `j` `k` move between groups, `Enter` expands, `a` acknowledges, `s`
//! silences the focused group.

use leptos::ev;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement};

use crate::focus::focus;
use crate::keyboard_shortcuts::plain_key;

#[component]
pub(super) fn AlertKeys() -> impl IntoView {
    Effect::new(move |_| {
        let listener = window_event_listener(ev::keydown, move |event| {
            let is_used = match plain_key(&event).as_deref() {
                Some("j") => step(true),
                Some("k") => step(false),
                Some("a") => click("[data-ack] button"),
                Some("s") => click("[data-silence]"),
                _ => false,
            };
            if is_used {
                event.prevent_default();
            }
        });
        on_cleanup(move || listener.remove());
    });
}

/// The group with the focus.
fn focused() -> Option<Element> {
    document()
        .query_selector("[data-group]:focus-within")
        .ok()
        .flatten()
}

/// Focuses the control that expands the next or previous group.
fn step(is_next: bool) -> bool {
    let group = match focused() {
        Some(group) if is_next => group.next_element_sibling(),
        Some(group) => group.previous_element_sibling(),
        None => document().query_selector("[data-group]").ok().flatten(),
    };
    let control = group.and_then(|group| group.query_selector("[data-expand]").ok().flatten());
    control.inspect(focus).is_some()
}

/// Clicks a control of the focused group.
fn click(selector: &str) -> bool {
    let control = focused().and_then(|group| group.query_selector(selector).ok().flatten());
    let control = control.and_then(|control| control.dyn_into::<HtmlElement>().ok());
    control.inspect(|control| control.click()).is_some()
}
