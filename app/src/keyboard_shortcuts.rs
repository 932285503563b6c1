//! Keyboard shortcuts: one listener per tab, and the dialog that lists them.
//!
//! Tables listen for `j` and `k` themselves, because they own their rows.

use leptos::ev;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{HtmlElement, HtmlInputElement, KeyboardEvent};

use crate::components::legend::ExpiryBarLegend;
use crate::links;
use crate::live::use_live;
use crate::pages::PAGES;

/// Keys and what they do; the pages follow from the navigation table.
const KEYS: [(&[&str], &str); 8] = [
    (&["/"], "search"),
    (&["j", "k"], "next and previous row"),
    (&["↵"], "open the row"),
    (&["u"], "unlock this lock, or the lock of the focused row"),
    (&["a"], "acknowledge the focused alert"),
    (&["s"], "silence the focused alert"),
    (&["p"], "pause or resume live updates"),
    (&["?"], "show this list"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Command {
    Search,
    Pause,
    Unlock,
    Page,
    List,
}

fn is_key(shortcut: char, key: &str) -> bool {
    let mut chars = key.chars();
    chars.next() == Some(shortcut) && chars.next().is_none()
}

/// `before` is the previous key, for two-key shortcuts.
fn command(before: Option<char>, key: &str) -> Option<Command> {
    match (before, key) {
        (Some('g'), letter) if PAGES.iter().any(|page| is_key(page.shortcut, letter)) => Some(Command::Page),
        (_, "/") => Some(Command::Search),
        (_, "p") => Some(Command::Pause),
        (_, "u") => Some(Command::Unlock),
        (_, "?") => Some(Command::List),
        _ => None,
    }
}

/// The key of the event; `None` if a field, a dialog, the browser or an earlier listener handles it.
/// For example, `a` after `g` opens the alerts and does not acknowledge an alert.
pub fn plain_key(event: &KeyboardEvent) -> Option<String> {
    let is_handled = event.default_prevented() || event.is_composing();
    if is_handled || event.ctrl_key() || event.meta_key() || event.alt_key() {
        return None;
    }
    let element = event.target()?.dyn_into::<web_sys::Element>().ok()?;
    let key_consumer =
        element.closest("input:not([type=checkbox]), textarea, select, dialog, [contenteditable]");
    matches!(key_consumer, Ok(None)).then(|| event.key())
}

fn focus_search() {
    // The page's own search takes precedence over the bar's.
    let found = ["main [data-search]", "[data-search]"]
        .into_iter()
        .find_map(|selector| {
            let element = document().query_selector(selector).ok().flatten()?;
            element
                .dyn_into::<HtmlInputElement>()
                .ok()
                .filter(|input| input.offset_parent().is_some())
        });
    if let Some(input) = found {
        let _ = input.focus();
        input.select();
    }
}

/// Clicks its link in the bar, which need not be visible.
fn go_to_page(letter: &str) {
    let found = document().query_selector(&format!("[data-g={letter}]"));
    if let Some(link) = found
        .ok()
        .flatten()
        .and_then(|link| link.dyn_into::<HtmlElement>().ok())
    {
        link.click();
    }
}

/// From a lock's page, or from the focused row.
fn go_to_unlock() {
    let found = |selector: &str| document().query_selector(selector).ok().flatten();
    let link = found("a[data-unlock]").or_else(|| found("[data-row]:focus-within a"));
    if let Some(href) = link.and_then(|link| link.get_attribute("href")) {
        let _ = window().location().set_href(&links::unlock(&href));
    }
}

/// The listener. Once per tab.
#[component]
pub fn Keys() -> impl IntoView {
    let live = use_live();
    let before = StoredValue::new(None::<char>);
    Effect::new(move |_| {
        let listener = window_event_listener(ev::keydown, move |event| {
            let Some(key) = plain_key(&event) else { return };
            let last = before.get_value();
            before.set_value((key == "g").then_some('g'));
            let Some(command) = command(last, &key) else {
                return;
            };
            event.prevent_default();
            match command {
                Command::Search => focus_search(),
                Command::Pause => live.toggle_pause(),
                Command::Unlock => go_to_unlock(),
                Command::Page => go_to_page(&key),
                Command::List => open_dialog(),
            }
        });
        on_cleanup(move || listener.remove());
    });
}

/// The dialog, outside the hydrated tree: needs no browser code.
#[component]
pub fn KeysDialog() -> impl IntoView {
    view! {
        <dialog class="keys" id="keys" aria-labelledby="keys-title" closedby="any">
            <header>
                <h2 id="keys-title">"Keys"</h2>
                <form method="dialog"><button class="btn s">"Close"</button></form>
            </header>
            <dl>{keys_list()}</dl>
            <ExpiryBarLegend/>
        </dialog>
    }
}

fn keys_list() -> AnyView {
    let row = |keys: Vec<String>, what: &'static str| {
        let keys = keys.into_iter().map(|key| view! { <kbd>{key}</kbd> }.into_any());
        view! { <dt>{keys.collect_view()}</dt><dd>{what}</dd> }.into_any()
    };
    let keys = KEYS
        .iter()
        .map(|(keys, what)| row(keys.iter().map(|key| (*key).to_owned()).collect(), what));
    let pages = PAGES
        .iter()
        .map(|page| row(vec!["g".to_owned(), page.shortcut.to_string()], page.label));
    keys.chain(pages).collect_view().into_any()
}

fn open_dialog() {
    let dialog = document()
        .get_element_by_id("keys")
        .and_then(|found| found.dyn_into::<web_sys::HtmlDialogElement>().ok());
    if let Some(dialog) = dialog.filter(|dialog| !dialog.open()) {
        let _ = dialog.show_modal();
    }
}

/// The button that opens the dialog.
#[component]
pub fn KeysOpen() -> impl IntoView {
    view! {
        <button class="icon keys-open" type="button" aria-label="Keys" aria-keyshortcuts="?" title="Keys" on:click=|_| open_dialog()>
            <kbd aria-hidden="true">"?"</kbd>
        </button>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_need_the_g_before_their_letter() {
        assert_eq!(command(Some('g'), "l"), Some(Command::Page));
        assert_eq!(command(None, "l"), None);
        assert_eq!(command(Some('g'), "ol"), None);
        assert_eq!(command(Some('g'), "p"), Some(Command::Pause));
    }
}
