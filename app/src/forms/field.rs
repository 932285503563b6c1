//! Fields of a [`ConsoleForm`](super::console_form::ConsoleForm): label, control, help and error.
//! Each keeps what was typed when the form is refused.

use leptos::prelude::*;

use super::console_form::use_form;
use crate::components::escape_html::escape_html;

/// A label and a line of text.
#[component]
pub fn TextField(
    #[prop(into)] name: String,
    #[prop(into)] label: String,
    /// Initial value; what was typed takes precedence.
    #[prop(optional, into)]
    value: String,
    #[prop(optional, into)] help: Option<String>,
    #[prop(optional)] is_optional: bool,
    #[prop(optional, into)] class: Option<String>,
) -> impl IntoView {
    let value = use_form().typed_value(&name, &value);
    control(Control {
        kind: "text",
        autocomplete: "off",
        is_required: !is_optional,
        value: Some(value),
        class,
        help,
        label,
        name,
    })
}

/// A label and a password; never filled by the server.
#[component]
pub fn PasswordField(
    #[prop(into)] name: String,
    #[prop(into)] label: String,
    /// For password managers.
    autocomplete: &'static str,
    #[prop(optional, into)] help: Option<String>,
    #[prop(optional)] is_optional: bool,
) -> impl IntoView {
    control(Control {
        kind: "password",
        autocomplete,
        is_required: !is_optional,
        value: None,
        class: None,
        help,
        label,
        name,
    })
}

struct Control {
    name: String,
    label: String,
    kind: &'static str,
    autocomplete: &'static str,
    is_required: bool,
    value: Option<String>,
    class: Option<String>,
    help: Option<String>,
}

fn control(of: Control) -> AnyView {
    let Control { name, label, .. } = of;
    let class = of
        .class
        .map_or_else(|| "entry".to_owned(), |class| format!("entry {class}"));
    view! {
        <div class=class>
            <label for=name.clone()>{label}</label>
            <input id=name.clone() name=name.clone() r#type=of.kind autocomplete=of.autocomplete value=of.value required=of.is_required
                aria-invalid=is_invalid(&name) aria-describedby=note_id(&name) spellcheck="false" autocapitalize="none"/>
            <FieldNote name help=of.help/>
        </div>
    }
    .into_any()
}

/// For `aria-invalid`; tracked.
pub fn is_invalid(name: &str) -> impl Fn() -> Option<&'static str> + Send + Sync + Clone + 'static {
    let (form, name) = (use_form(), name.to_owned());
    move || form.fault(&name).is_some().then_some("true")
}

/// Id of the help or error of a field, for `aria-describedby`.
pub fn note_id(name: &str) -> String {
    format!("{name}-note")
}

/// Error of a field, or its help.
#[component]
pub fn FieldNote(
    #[prop(into)] name: String,
    #[prop(optional_no_strip)] help: Option<String>,
) -> impl IntoView {
    let (form, id) = (use_form(), note_id(&name));
    let fault = Memo::new(move |_| form.fault(&name));
    view! {
        {move || match (fault.get(), help.clone()) {
            (Some(fault), _) => view! { <p class="fault" id=id.clone()>{fault}</p> }.into_any(),
            (None, Some(help)) => view! { <p class="help" id=id.clone()>{help}</p> }.into_any(),
            (None, None) => ().into_any(),
        }}
    }
    .into_any()
}

/// A label and several lines of text.
#[component]
pub fn TextArea(
    #[prop(into)] name: String,
    #[prop(into)] label: String,
    #[prop(optional, into)] value: String,
    #[prop(optional, into)] help: Option<String>,
    #[prop(optional)] is_optional: bool,
    #[prop(default = 3)] rows: u32,
) -> impl IntoView {
    let value = use_form().typed_value(&name, &value);
    view! {
        <div class="entry">
            <label for=name.clone()>{label}</label>
            <textarea id=name.clone() name=name.clone() rows=rows required=!is_optional aria-invalid=is_invalid(&name)
                aria-describedby=note_id(&name) inner_html=textarea_html(&value)></textarea>
            <FieldNote name help/>
        </div>
    }
    .into_any()
}

/// Content of a `<textarea>`. The HTML parser of a browser drops the first line break, so HTML gets an extra one. A value that
/// a script sets keeps all line breaks.
pub fn textarea_html(value: &str) -> String {
    let extra = if cfg!(feature = "ssr") { "\n" } else { "" };
    format!("{extra}{}", escape_html(value))
}

/// A label and a select; `options` are value and label.
#[component]
pub fn ChoiceField(
    #[prop(into)] name: String,
    #[prop(into)] label: String,
    options: Vec<(String, String)>,
    #[prop(optional, into)] chosen: String,
) -> impl IntoView {
    let chosen = use_form().typed_value(&name, &chosen);
    view! {
        <div class="entry">
            <label for=name.clone()>{label}</label>
            <select id=name.clone() name=name.clone() aria-invalid=is_invalid(&name) aria-describedby=note_id(&name)>
                {options_view(options, &chosen)}
            </select>
            <FieldNote name help=None/>
        </div>
    }
    .into_any()
}

/// Options of a select, value and label.
pub fn options_view(options: Vec<(String, String)>, chosen: &str) -> AnyView {
    options
        .into_iter()
        .map(|(value, label)| {
            let is_chosen = value == chosen;
            view! { <option value=value selected=is_chosen>{label}</option> }.into_any()
        })
        .collect_view()
        .into_any()
}

/// A submit button; disabled while the form is sent.
#[component]
pub fn SubmitButton(
    #[prop(optional, into)] class: Option<String>,
    /// Sent with the form.
    #[prop(optional, into)]
    name: Option<String>,
    #[prop(optional, into)] value: Option<String>,
    /// Accessible name where the label alone is ambiguous.
    #[prop(optional, into)]
    aria_label: Option<String>,
    #[prop(optional, into)] formaction: Option<String>,
    children: Children,
) -> impl IntoView {
    let form = use_form();
    let class = class.unwrap_or_else(|| "btn solid".to_owned());
    view! {
        <button class=class r#type="submit" name=name value=value aria-label=aria_label formaction=formaction
            aria-disabled=move || form.is_sending().then_some("true")>{children()}</button>
    }
    .into_any()
}
