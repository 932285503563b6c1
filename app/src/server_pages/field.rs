//! Form parts: field with label, help and error; choice; form-level message; secret.

use crate::components::escape_html::escape_html;
use leptos::prelude::*;

/// One line of text. `kind` is `text` or `password`; `autocomplete` is for password managers.
pub struct Field {
    pub name: &'static str,
    pub label: &'static str,
    pub kind: &'static str,
    pub autocomplete: &'static str,
    pub value: String,
    pub help: Option<&'static str>,
    /// Validation error.
    pub fault: Option<String>,
    pub is_required: bool,
}

impl Field {
    /// A required line without help.
    pub fn text(name: &'static str, label: &'static str, value: String) -> Self {
        Self {
            name,
            label,
            kind: "text",
            autocomplete: "off",
            value,
            help: None,
            fault: None,
            is_required: true,
        }
    }

    pub fn password(name: &'static str, label: &'static str, autocomplete: &'static str) -> Self {
        Self {
            kind: "password",
            autocomplete,
            ..Self::text(name, label, String::new())
        }
    }

    pub fn view(self) -> AnyView {
        let Self {
            name,
            label,
            kind,
            autocomplete,
            value,
            help,
            fault,
            is_required,
        } = self;
        let has_note = fault.is_some() || help.is_some();
        let described = has_note.then(|| note_id(name));
        let is_bad = fault.is_some().then_some("true");
        view! {
            <div class="entry">
                <label for=name>{label}</label>
                <input id=name name=name r#type=kind autocomplete=autocomplete value=value required=is_required
                    aria-invalid=is_bad aria-describedby=described spellcheck="false" autocapitalize="none"/>
                {field_note(name, help, fault)}
            </div>
        }
        .into_any()
    }
}

/// Several lines of text.
pub struct Area {
    pub name: &'static str,
    pub label: &'static str,
    pub value: String,
    pub help: Option<&'static str>,
    /// Validation error.
    pub fault: Option<String>,
}

impl Area {
    pub fn view(self) -> AnyView {
        self.view_if(true)
    }

    /// The same, optionally required.
    pub fn view_if(self, is_required: bool) -> AnyView {
        let Self {
            name,
            label,
            value,
            help,
            fault,
        } = self;
        let has_note = fault.is_some() || help.is_some();
        let described = has_note.then(|| note_id(name));
        let is_bad = fault.is_some().then_some("true");
        view! {
            <div class="entry">
                <label for=name>{label}</label>
                // A browser drops the first line break: an extra one preserves the text.
                <textarea id=name name=name rows="3" required=is_required aria-invalid=is_bad aria-describedby=described>{format!("\n{}", escape_html(&value))}</textarea>
                {field_note(name, help, fault)}
            </div>
        }
        .into_any()
    }
}

fn note_id(name: &str) -> String {
    format!("{name}-note")
}

fn field_note(name: &str, help: Option<&'static str>, fault: Option<String>) -> AnyView {
    match (fault, help) {
        (Some(fault), _) => view! { <p class="fault" id=note_id(name)>{fault}</p> }.into_any(),
        (None, Some(help)) => view! { <p class="help" id=note_id(name)>{help}</p> }.into_any(),
        (None, None) => ().into_any(),
    }
}

/// A select; `options` are value and label.
pub fn choice(
    name: &'static str,
    label: &'static str,
    options: Vec<(String, String)>,
    chosen: &str,
) -> AnyView {
    view! {
        <div class="entry">
            <label for=name>{label}</label>
            <select id=name name=name>{options_of(options, chosen)}</select>
        </div>
    }
    .into_any()
}

pub(super) fn options_of(options: Vec<(String, String)>, chosen: &str) -> AnyView {
    options
        .into_iter()
        .map(|(value, word)| {
            let is_chosen = value == chosen;
            view! { <option value=value selected=is_chosen>{word}</option> }
        })
        .collect_view()
        .into_any()
}

/// Error of the whole form, announced by screen readers.
pub fn alert(text: Option<String>) -> AnyView {
    match text {
        Some(text) => view! { <p class="notice critical" role="alert">{text}</p> }.into_any(),
        None => ().into_any(),
    }
}

/// Success message.
pub fn done(text: Option<String>) -> AnyView {
    match text {
        Some(text) => view! { <p class="notice healthy" role="status">{text}</p> }.into_any(),
        None => ().into_any(),
    }
}
