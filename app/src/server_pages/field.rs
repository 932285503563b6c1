//! Form parts: field with label, help and error; form-level message.

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

/// Error of the whole form, announced by screen readers.
pub fn alert(text: Option<String>) -> AnyView {
    match text {
        Some(text) => view! { <p class="notice critical" role="alert">{text}</p> }.into_any(),
        None => ().into_any(),
    }
}
