//! The form of a rule: condition and thresholds, timing, scope, notification. A field that
//! differs from the saved version says so.

use domain::alerts::{ConditionKind, SubjectKind};
use leptos::prelude::*;
use wasm_bindgen::JsCast;

use super::{ACTION, FORM_ID, field, is_refused_as_removed};
use crate::components::reactive::changing;
use crate::forms::console_form::{ConsoleForm, FormAlert, FormState, use_form};
use crate::forms::field::{FieldNote, SubmitButton, TextArea, is_invalid, note_id, options_view};
use crate::pages::rule_editor::data::{REMOVED_NOTE, RuleEditorData};

/// The draft and its saved version, shared by the fields.
type Draft = StoredValue<RuleEditorData>;

#[component]
pub(super) fn RuleForm(data: RuleEditorData, kind: ConditionKind, form: FormState) -> impl IntoView {
    let info = kind.info();
    let name = field(&data.fields, "name").to_owned();
    let is_removed = data.is_removed || is_refused_as_removed(form.first_reply().as_ref());
    let (version, may_edit) = (data.version, data.may_edit);
    let (id, base) = match is_removed {
        true => (String::new(), String::new()),
        false => saved_version(&data, form),
    };
    let template = field(&data.fields, "template").to_owned();
    let faults = data.faults.clone();
    let is_enabled = match form.first_reply() {
        Some(reply) if !reply.fields.fields.is_empty() => reply.fields.find("enabled") == Some("yes"),
        _ => field(&data.fields, "enabled") == "yes",
    };
    let data = StoredValue::new(data);
    let heading = match version {
        Some(version) => format!("Rule, version {version}"),
        None => "New rule".to_owned(),
    };
    view! {
        <ConsoleForm action=ACTION class="panel re-panel" id=FORM_ID label="rule" state=form>
            <header>
                <div><p class="small ink2">{heading}</p><h2>{info.title}</h2></div>
                <label class="al-tick"><input r#type="checkbox" name="enabled" value="yes" checked=is_enabled/>" Enabled"</label>
            </header>
            <FormAlert/>
            {changing(move || (is_removed && !is_refused_as_removed(form.reply().as_ref())).then(removed_note))}
            <UrlFaults faults/>
            <input r#type="hidden" name="id" value=id.clone()/>
            <input r#type="hidden" name="condition" value=kind.as_str()/>
            <input r#type="hidden" name="version" value=base/>
            <FormRow label="Name"><Line name="name" label="Name" data/></FormRow>
            <FormRow label="Fires when">
                <p class="small ink2">{info.when}</p>
                {thresholds(kind, data)}
            </FormRow>
            <FormRow label="For"><Line name="for" label="For" data/></FormRow>
            <FormRow label="Keep firing for"><Line name="keep_firing_for" label="Keep firing for" data/></FormRow>
            <FormRow label="Scope">{scope(kind, data)}</FormRow>
            <FormRow label="Notification">
                <Select name="severity" label="Severity" options=plain_options(&["critical", "warning", "info"]) data/>
                <Line name="receivers" label="Receivers, empty: all" data/>
                <Line name="group_by" label="One notification per" data/>
                <Line name="runbook" label="Runbook, empty: default" data/>
            </FormRow>
            <FormRow label="Message">
                <TextArea name="template" label="Message" value=template rows=2 is_optional=true
                    help="Leave empty for the default message. Variables: {rule} {subject} {owner} {why}."/>
            </FormRow>
            <Buttons id version name may_edit is_removed/>
        </ConsoleForm>
    }
    .into_any()
}

/// The rule that is changed, and its version. As typed where the page could not read the rule.
fn saved_version(data: &RuleEditorData, form: FormState) -> (String, String) {
    let version = data.version.map(|version| version.to_string());
    match data.id.is_empty() {
        true => (form.typed_value("id", ""), form.typed_value("version", "")),
        false => (data.id.clone(), version.unwrap_or_default()),
    }
}

fn removed_note() -> AnyView {
    view! { <p class="notice warning" role="alert">{REMOVED_NOTE}</p> }.into_any()
}

/// Label at the left, controls at the right, a hairline below.
#[component]
fn FormRow(label: &'static str, children: Children) -> impl IntoView {
    view! { <div class="frow"><span class="frow-l" aria-hidden="true">{label}</span><div class="frow-c">{children()}</div></div> }
        .into_any()
}

#[component]
fn UrlFaults(faults: Vec<(String, String)>) -> impl IntoView {
    faults
        .into_iter()
        .map(|(name, fault)| view! { <p class="fault" role="alert">{name}": "{fault}</p> }.into_any())
        .collect_view()
}

/// Initial value of a field, its saved value, and whether they differ. A new rule has no saved
/// value.
struct FieldState {
    value: String,
    saved: Option<String>,
    is_changed: bool,
}

impl FieldState {
    fn new(name: &str, default: &str, data: Draft) -> Self {
        data.with_value(|data| {
            let initial = data.fields.iter().find(|(field, _)| field == name);
            let initial = initial.map_or(default, |(_, value)| value);
            let value = use_form().typed_value(name, initial);
            let saved = data.version.map(|_| field(&data.saved, name).to_owned());
            let is_changed = saved.as_deref().is_some_and(|saved| saved != value.trim());
            Self {
                value,
                saved,
                is_changed,
            }
        })
    }

    /// `saved: 2 m`, shown while the field differs.
    fn field_note(&self) -> Option<AnyView> {
        let saved = self.saved.as_ref()?;
        let text = if saved.is_empty() {
            "saved: none".to_owned()
        } else {
            format!("saved: {saved}")
        };
        Some(view! { <span class="saved small ink2">{text}</span> }.into_any())
    }
}

#[component]
fn Line(
    #[prop(into)] name: String,
    #[prop(into)] label: String,
    data: Draft,
    #[prop(optional)] default: String,
) -> impl IntoView {
    let state = FieldState::new(&name, &default, data);
    let (note, is_changed, value) = (state.field_note(), state.is_changed, state.value);
    view! {
        <div class="entry" class:is-changed=is_changed>
            <label for=name.clone()>{label}</label>
            <input id=name.clone() name=name.clone() r#type="text" value=value autocomplete="off" spellcheck="false"
                aria-invalid=is_invalid(&name) aria-describedby=note_id(&name) on:input=mark_changed(state.saved)/>
            {note}
            <FieldNote name help=None/>
        </div>
    }
    .into_any()
}

/// Marks the field while its value differs from the saved one.
fn mark_changed(saved: Option<String>) -> impl FnMut(leptos::ev::Event) + 'static {
    move |event| {
        let target = event
            .target()
            .and_then(|target| target.dyn_into::<web_sys::Element>().ok());
        let entry = target.and_then(|field| field.closest(".entry").ok().flatten());
        if let (Some(entry), Some(saved)) = (entry, &saved) {
            let is_changed = event_target_value(&event).trim() != saved;
            let _ = entry.class_list().toggle_with_force("is-changed", is_changed);
        }
    }
}

#[component]
fn Select(
    name: &'static str,
    label: &'static str,
    options: Vec<(String, String)>,
    data: Draft,
) -> impl IntoView {
    let state = FieldState::new(name, "", data);
    let (note, is_changed) = (state.field_note(), state.is_changed);
    view! {
        <div class="entry" class:is-changed=is_changed>
            <label for=name>{label}</label>
            <select id=name name=name aria-invalid=is_invalid(name) aria-describedby=note_id(name) on:input=mark_changed(state.saved)>
                {options_view(options, &state.value)}
            </select>
            {note}
            <FieldNote name help=None/>
        </div>
    }
    .into_any()
}

fn thresholds(kind: ConditionKind, data: Draft) -> AnyView {
    let lines = kind.info().params.iter().map(|param| {
        let name = format!("with.{}", param.name);
        let default = param.default.map(|value| param.unit.text(value));
        view! { <Line name label=param.label data default=default.unwrap_or_default()/> }.into_any()
    });
    lines.collect_view().into_any()
}

fn plain_options(values: &[&str]) -> Vec<(String, String)> {
    values
        .iter()
        .map(|value| ((*value).to_owned(), (*value).to_owned()))
        .collect()
}

fn scope(kind: ConditionKind, data: Draft) -> AnyView {
    let about = kind.about();
    let mut backends = vec![(String::new(), "any".to_owned())];
    data.with_value(|data| backends.extend(data.backends.iter().map(|name| (name.clone(), name.clone()))));
    let mut classes = vec![(String::new(), "any".to_owned())];
    classes.extend(plain_options(&["correctness", "efficiency"]));
    let form = use_form();
    let anyway = changing(move || {
        form.fault("prefix").is_some().then(|| {
            view! { <label class="al-tick"><input r#type="checkbox" name="any_prefix" value="yes"/>" Accept a prefix without locks"</label> }.into_any()
        })
    });
    let by_name = (about != SubjectKind::Backend)
        .then(|| view! { <Line name="prefix" label="Prefix, with * for ids" data/>{anyway} }.into_any());
    let by_lock = (about == SubjectKind::Lock).then(|| {
        view! {
            <Line name="owner" label="Owner" data/>
            <Select name="safety" label="Safety class" options=classes data/>
        }
        .into_any()
    });
    view! {
        {by_name}
        <Select name="backends" label="Backend" options=backends data/>
        {by_lock}
    }
    .into_any()
}

#[component]
fn Buttons(
    id: String,
    version: Option<i64>,
    name: String,
    may_edit: bool,
    is_removed: bool,
) -> impl IntoView {
    if !may_edit {
        return view! { <p class="small ink2">"Only an admin may change rules."</p> }.into_any();
    }
    let save = match version {
        _ if is_removed => "Save as a new rule".to_owned(),
        Some(version) => format!("Save as version {}", version + 1),
        None => "Save rule".to_owned(),
    };
    let remove = version.filter(|_| !is_removed).map(|_| {
        let action = format!("/alerts/rules/{id}/remove");
        let aria_label = format!("Remove the rule {name}");
        view! { <SubmitButton class="btn plain" formaction=action aria_label>"Remove"</SubmitButton> }
            .into_any()
    });
    view! {
        <footer class="al-do">
            // First, so that Enter previews and never saves.
            <span class="no-script"><SubmitButton class="btn" name="act" value="preview">"Preview"</SubmitButton></span>
            <SubmitButton name="act" value="save">{save}</SubmitButton>
            <a class="btn plain" href="/alerts">"Discard"</a>
            {remove}
        </footer>
    }
    .into_any()
}

/// Choice of a condition for a new rule.
#[component]
pub(super) fn Pick(data: RuleEditorData) -> impl IntoView {
    let kinds = ConditionKind::ALL.map(|kind| {
        let info = kind.info();
        view! {
            <li class="al-r">
                <a class="al-rule" href=format!("/alerts/rules/new?condition={}", kind.as_str())>{info.title}</a>
                <span class="small ink3">{info.severity.as_str()}</span>
                <span class="small ink2">{format!("fires when {}", info.when)}</span>
            </li>
        }
        .into_any()
    });
    view! {
        <section class="sec"><header><h2>"Condition"</h2></header>
            <UrlFaults faults=data.faults/>
            <ul class="als">{kinds.into_iter().collect_view()}</ul>
        </section>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forms::console_form::FirstReply;
    use crate::forms::reply::{FormReply, TypedFields};

    #[test]
    fn a_form_keeps_its_version_while_the_rule_is_unread() {
        // The store did not answer: the form is sent again once it does.
        let owner = Owner::new();
        owner.set();
        let typed = [("id", "long_held"), ("version", "3")];
        let typed = typed.map(|(name, value)| (name.to_owned(), value.to_owned()));
        provide_context(FirstReply::new(Some(FormReply {
            action: ACTION.to_owned(),
            status: 503,
            fields: TypedFields::without_secrets(typed.to_vec()),
            ..FormReply::default()
        })));
        let form = FormState::of_action(ACTION);
        let [typed_id, typed_version] = typed.map(|(_, value)| value);
        let unread = RuleEditorData::default();
        assert_eq!(saved_version(&unread, form), (typed_id.clone(), typed_version));
        let read = RuleEditorData {
            id: typed_id.clone(),
            version: Some(4),
            ..unread
        };
        assert_eq!(saved_version(&read, form), (typed_id, "4".to_owned()));
    }
}
