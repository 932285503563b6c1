//! Keyboard focus: moves it, and passes it on when the control that has it is removed.

use std::cell::RefCell;

use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{Element, FocusOptions, HtmlElement};

/// Selector of successors that are headings: a screen reader then announces the current section.
pub const HEADINGS: &str = "h1, h2, h3";

thread_local! {
    /// Parents of the form that was submitted last, nearest first, inside of its page.
    static SUBMITTED_IN: RefCell<Vec<Element>> = const { RefCell::new(Vec::new()) };
}

/// Focuses an element if it is focusable.
pub fn focus(element: &Element) {
    if let Some(element) = element.dyn_ref::<HtmlElement>() {
        let _ = element.focus();
    }
}

/// Focuses the element if no element has the focus, because the control that had it was removed. A screen reader then
/// announces the element.
pub fn focus_if_lost(element: &Element) {
    if focused().is_none() {
        if !element.has_attribute("tabindex") {
            let _ = element.set_attribute("tabindex", "-1");
        }
        focus(element);
    }
}

/// Call it before elements are moved in the document, which takes the focus away: the focused element gets it back,
/// without a scroll.
pub fn keep_focus() {
    // Only a browser has a focus.
    if cfg!(feature = "ssr") {
        return;
    }
    let Some(element) = focused() else { return };
    request_animation_frame(move || {
        let element = element.dyn_ref::<HtmlElement>();
        if let Some(element) = element.filter(|element| element.is_connected() && focused().is_none()) {
            let options = FocusOptions::new();
            options.set_prevent_scroll(true);
            let _ = element.focus_with_options(&options);
        }
    });
}

/// The element with the focus.
fn focused() -> Option<Element> {
    let active = document().active_element();
    active.filter(|active| active.tag_name() != "BODY")
}

/// Call it before a form is sent that may remove its own row. A row of a keyed list leaves the document before its cleanup
/// runs, so the cleanup can find neither the focus nor the list.
pub fn record_parents(form: &Element) {
    let parents = collect_parents(form).into_iter();
    // Stops at the page: outside of it, the focus would land on another page.
    SUBMITTED_IN.set(parents.take_while(|parent| parent.tag_name() != "MAIN").collect());
}

/// The recorded parents, once, if the form is out of the document.
fn take_parents_of_removed() -> Vec<Element> {
    let is_removed = |parent: &Element| !parent.is_connected();
    match SUBMITTED_IN.with_borrow(|parents| parents.first().is_some_and(is_removed)) {
        true => SUBMITTED_IN.take(),
        false => Vec::new(),
    }
}

/// Elements around an element, nearest first.
fn collect_parents(element: &Element) -> Vec<Element> {
    std::iter::successors(element.parent_element(), |parent| parent.parent_element()).collect()
}

/// Call it where a part with a control is created. If the part is removed while `focused` selects it, the focus goes to
/// the first `successor` inside the nearest parent that stays, or to that parent.
pub fn pass_on_focus(focused: &'static str, successor: &'static str) {
    // Only a browser has a focus.
    if cfg!(feature = "ssr") {
        return;
    }
    on_cleanup(move || {
        let part = document().query_selector(focused).ok().flatten();
        let parents = part.map_or_else(take_parents_of_removed, |part| collect_parents(&part));
        if parents.is_empty() {
            return;
        }
        // One frame later the replacement is in the document.
        request_animation_frame(move || {
            if let Some(parent) = parents.into_iter().find(|parent| parent.is_connected()) {
                let found = parent.query_selector(successor).ok().flatten();
                focus_if_lost(&found.unwrap_or(parent));
            }
        });
    });
}
