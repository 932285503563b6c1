//! Rule editor: form and versions. The preview is streamed in parts, see `preview.rs`.

use crate::components::escape_html::escape_html;
use domain::alerts::{About, ConditionKind, Draft, FieldError, Param};
use leptos::prelude::*;

use super::history::{Version, versions};
use super::preview::{MARK, parts};
use crate::server_pages::field::{Area, Field, alert, choice, done};
use crate::server_pages::layout::{Chrome, Page, PageSection, page};

#[derive(Debug, Clone, Default)]
pub struct Editor {
    pub draft: Draft,
    /// `None`: a new rule.
    pub version: Option<i64>,
    pub faults: Vec<FieldError>,
    pub refusal: Option<String>,
    pub done: Option<String>,
    pub backends: Vec<String>,
    /// Parts of a preview follow.
    pub has_preview: bool,
    /// Newest first.
    pub versions: Vec<Version>,
    pub may_edit: bool,
}

/// The page before and after the streamed preview.
#[derive(Debug, Clone)]
pub struct EditorPage {
    pub before: String,
    /// Empty: no preview.
    pub after: String,
}

pub fn editor(chrome: &Chrome, shown: &Editor) -> EditorPage {
    let html = html(chrome, shown);
    match html.split_once(MARK).filter(|_| shown.has_preview) {
        Some((before, after)) => EditorPage {
            before: before.to_owned(),
            after: after.to_owned(),
        },
        None => EditorPage {
            before: html,
            after: String::new(),
        },
    }
}

fn html(chrome: &Chrome, editor: &Editor) -> String {
    let kind = ConditionKind::parse(&editor.draft.condition);
    let name = match (editor.draft.name.as_str(), kind) {
        ("", Some(kind)) => kind.info().title.to_owned(),
        ("", None) => "New rule".to_owned(),
        (name, _) => name.to_owned(),
    };
    let lead = match editor.version {
        Some(version) => format!("Rule, version {version}. Changes apply when saved."),
        None => "Preview the rule on past data before you save it.".to_owned(),
    };
    let content = view! {
        {alert(editor.refusal.clone())}
        {done(editor.done.clone())}
        <div class="al-two">
            {form(editor, kind)}
            <div class="stack">{editor.has_preview.then(parts)}{versions(&editor.versions)}</div>
        </div>
    };
    let chrome = Chrome {
        place: PageSection::Alerts,
        ..chrome.clone()
    };
    page(
        &chrome,
        Page {
            title: name,
            lead: Some(lead),
            content: content.into_any(),
        },
    )
}

fn fault(editor: &Editor, field: &str) -> Option<String> {
    let found = editor.faults.iter().find(|fault| fault.field == field)?;
    Some(format!("It {}: {}.", found.why, found.remedy))
}

fn line(editor: &Editor, name: &'static str, label: &'static str, value: String) -> AnyView {
    Field {
        fault: fault(editor, name),
        is_required: false,
        ..Field::text(name, label, value)
    }
    .view()
}

/// Value of the field.
pub(super) fn param_value(draft: &Draft, param: &Param) -> String {
    let given = draft.with.get(param.name).cloned();
    given.unwrap_or_else(|| {
        param
            .default
            .map(|value| param.unit.text(value))
            .unwrap_or_default()
    })
}

/// Fields of the condition's thresholds.
fn thresholds(editor: &Editor, kind: ConditionKind) -> AnyView {
    let draft = &editor.draft;
    let fields = kind.info().params.iter().map(|param| {
        let value = param_value(draft, param);
        let id = format!("with.{}", param.name);
        let why = fault(editor, &id);
        let is_bad = why.is_some().then_some("true");
        view! {
            <div class="entry">
                <label for=id.clone()>{param.words}</label>
                <input id=id.clone() name=id r#type="text" value=value aria-invalid=is_bad autocomplete="off"/>
                {why.map(|why| view! { <p class="fault">{why}</p> })}
            </div>
        }
    });
    fields.collect_view().into_any()
}

fn form(editor: &Editor, kind: Option<ConditionKind>) -> AnyView {
    let draft = &editor.draft;
    let Some(kind) = kind else {
        return pick(editor);
    };
    let info = kind.info();
    let severities = ["critical", "warning", "info"].map(|word| (word.to_owned(), word.to_owned()));
    let mut backends = vec![(String::new(), "any".to_owned())];
    backends.extend(editor.backends.iter().map(|name| (name.clone(), name.clone())));
    let classes = [
        ("", "any"),
        ("correctness", "correctness"),
        ("efficiency", "efficiency"),
    ];
    let classes = classes.map(|(value, word)| (value.to_owned(), word.to_owned()));
    let by_lock = (info.about == About::Lock).then(|| {
        view! {
            {line(editor, "owner", "Owner", draft.owner.clone())}
            {choice("safety", "Safety class", classes.to_vec(), &draft.safety)}
        }
    });
    let by_name = (info.about != About::Backend).then(|| {
        let anyway = fault(editor, "prefix").is_some().then(|| view! { <label class="al-tick"><input r#type="checkbox" name="any_prefix" value="yes"/>" Accept a prefix without locks"</label> });
        view! { {line(editor, "prefix", "Prefix, with * for ids", draft.prefix.clone())}{anyway} }
    });
    let groups = draft.group_by.clone().unwrap_or_default().join(", ");
    let template = Area {
        name: "template",
        label: "Message",
        value: draft.template.clone(),
        help: Some("Leave empty for the default message. Variables: {rule} {subject} {owner} {why}."),
        fault: fault(editor, "template"),
    };
    view! {
        <form class="panel al-form" id="rule" method="post" action="/alerts/rules" aria-label="rule">
            <header><h2>{info.title}</h2><span class="small ink2">{format!("fires when {}", info.when)}</span></header>
            <input r#type="hidden" name="id" value=draft.id.clone()/>
            <input r#type="hidden" name="condition" value=kind.as_str()/>
            <input r#type="hidden" name="version" value=editor.version.map(|version| version.to_string()).unwrap_or_default()/>
            {line(editor, "name", "Name", draft.name.clone())}
            <div class="al-grid">{thresholds(editor, kind)}</div>
            <div class="al-grid">
                {line(editor, "for", "For", draft.for_.clone().unwrap_or_default())}
                {line(editor, "keep_firing_for", "Keep firing for", draft.keep_firing_for.clone().unwrap_or_default())}
            </div>
            <div class="al-grid">
                {choice("backends", "Backend", backends, draft.backends.first().map_or("", String::as_str))}
                {by_name}{by_lock}
            </div>
            <div class="al-grid">
                {choice("severity", "Severity", severities.to_vec(), &draft.severity)}
                {line(editor, "group_by", "Group by", groups)}
                {line(editor, "receivers", "Receivers (empty: all)", draft.receivers.join(", "))}
                {line(editor, "runbook", "Runbook (empty: default)", draft.runbook.clone())}
            </div>
            <div class="al-opt">{optional(template)}</div>
            <label class="al-tick"><input r#type="checkbox" name="enabled" value="yes" checked=draft.enabled/>" Enabled"</label>
            {buttons(editor)}
        </form>
    }
    .into_any()
}

/// An optional message.
fn optional(area: Area) -> AnyView {
    let is_bad = area.fault.is_some().then_some("true");
    let class = if area.fault.is_some() { "fault" } else { "help" };
    view! {
        <div class="entry">
            <label for=area.name>{area.label}</label>
            <textarea id=area.name name=area.name rows="2" aria-invalid=is_bad>{format!("\n{}", escape_html(&area.value))}</textarea>
            <p class=class>{area.fault.or(area.help.map(str::to_owned))}</p>
        </div>
    }
    .into_any()
}

fn buttons(editor: &Editor) -> AnyView {
    if !editor.may_edit {
        return view! { <p class="small ink2">"Only an admin may change rules."</p> }.into_any();
    }
    let save = editor.version.map_or("Save rule".to_owned(), |version| {
        format!("Save as version {}", version + 1)
    });
    let remove = editor.version.map(|_| {
        let action = format!("/alerts/rules/{}/remove", editor.draft.id);
        view! { <button class="btn plain" r#type="submit" formaction=action>"Remove"</button> }
    });
    view! {
        <footer class="al-do">
            <button class="btn" r#type="submit" name="act" value="preview">"Preview"</button>
            <button class="btn solid" r#type="submit" name="act" value="save">{save}</button>
            <a class="btn plain" href="/alerts">"Discard"</a>
            {remove}
        </footer>
    }
    .into_any()
}

fn pick(editor: &Editor) -> AnyView {
    let kinds = ConditionKind::ALL.map(|kind| {
        let info = kind.info();
        view! {
            <li class="al-r">
                <a class="al-rule" href=format!("/alerts/rules/new?condition={}", kind.as_str())>{info.title}</a>
                <span class="small ink3">{info.severity.as_str()}</span>
                <span class="small ink2">{format!("fires when {}", info.when)}</span>
            </li>
        }
    });
    let why = fault(editor, "condition").filter(|_| !editor.draft.condition.is_empty());
    view! {
        <section class="sec"><header><h2>"Condition"</h2></header>
            {why.map(|why| view! { <p class="fault">{why}</p> })}
            <ul class="als">{kinds.into_iter().collect_view()}</ul>
        </section>
    }
    .into_any()
}
