//! Keyboard focus: moves it, and passes it on when the control that has it is removed.

use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement};

/// Successors that say where the reader is.
pub const HEADINGS: &str = "h1, h2, h3";

/// Focuses an element if it is focusable.
pub fn focus(element: &Element) {
    if let Some(element) = element.dyn_ref::<HtmlElement>() {
        let _ = element.focus();
    }
}

/// Focuses the element if the control that had the focus was removed; a screen reader announces the element then.
pub fn focus_if_lost(element: &Element) {
    let active = document().active_element();
    if active.is_none_or(|active| active.tag_name() == "BODY") {
        if !element.has_attribute("tabindex") {
            let _ = element.set_attribute("tabindex", "-1");
        }
        focus(element);
    }
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
        let parents = std::iter::successors(part, |element| element.parent_element()).skip(1);
        let parents: Vec<Element> = parents.collect();
        if parents.is_empty() {
            return;
        }
        // After the replacement is in the document.
        request_animation_frame(move || {
            if let Some(parent) = parents.into_iter().find(|parent| parent.is_connected()) {
                let found = parent.query_selector(successor).ok().flatten();
                focus_if_lost(&found.unwrap_or(parent));
            }
        });
    });
}
