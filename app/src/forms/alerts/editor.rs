//! One rule: its form and its versions. What it would have done comes in parts, see `foreseen.rs`.

use crate::components::escape_html::escape_html;
use domain::alerts::{About, Draft, Fault, Kind, Param};
use leptos::prelude::*;

use super::foreseen::{MARK, parts};
use super::versions::{Version, versions};
use crate::forms::chrome::{Chrome, Page, Place, page};
use crate::forms::field::{Area, Field, alert, choice, done};

#[derive(Debug, Clone, Default)]
pub struct Editor {
    pub draft: Draft,
    /// None: a new rule.
    pub version: Option<i64>,
    pub faults: Vec<Fault>,
    pub refusal: Option<String>,
    pub done: Option<String>,
    pub backends: Vec<String>,
    /// Parts of a preview follow.
    pub has_preview: bool,
    /// Newest first.
    pub versions: Vec<Version>,
    pub may_edit: bool,
}

/// The page up to where the parts of its preview stand, and the rest.
#[derive(Debug, Clone)]
pub struct EditorPage {
    pub before: String,
    /// Empty: there is no preview.
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
    let kind = Kind::parse(&editor.draft.condition);
    let name = match (editor.draft.name.as_str(), kind) {
        ("", Some(kind)) => kind.info().title.to_owned(),
        ("", None) => "New rule".to_owned(),
        (name, _) => name.to_owned(),
    };
    let lead = match editor.version {
        Some(version) => format!("Rule, version {version}. What is changed here counts when it is saved."),
        None => "A new rule. See what it would have done before you save it.".to_owned(),
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
        place: Place::Alerts,
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
    Some(format!("It {}: {}.", found.why, found.mend))
}

fn line(editor: &Editor, name: &'static str, label: &'static str, value: String) -> AnyView {
    Field {
        fault: fault(editor, name),
        is_required: false,
        ..Field::text(name, label, value)
    }
    .view()
}

/// As it stands in its field.
pub(super) fn shown(draft: &Draft, param: &Param) -> String {
    let given = draft.with.get(param.name).cloned();
    given.unwrap_or_else(|| {
        param
            .default
            .map(|value| param.unit.text(value))
            .unwrap_or_default()
    })
}

/// What the condition compares with.
fn thresholds(editor: &Editor, kind: Kind) -> AnyView {
    let draft = &editor.draft;
    let fields = kind.info().params.iter().map(|param| {
        let value = shown(draft, param);
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

fn form(editor: &Editor, kind: Option<Kind>) -> AnyView {
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
        let anyway = fault(editor, "prefix").is_some().then(|| view! { <label class="al-tick"><input r#type="checkbox" name="any_prefix" value="yes"/>" The prefix is right although nothing is there yet"</label> });
        view! { {line(editor, "prefix", "Prefix, with * for ids", draft.prefix.clone())}{anyway} }
    });
    let groups = draft.group_by.clone().unwrap_or_default().join(", ");
    let template = Area {
        name: "template",
        label: "Message",
        value: draft.template.clone(),
        help: Some(
            "Empty: the sentence of the alert. {rule} {subject} {owner} {why} and others may stand in it.",
        ),
        fault: fault(editor, "template"),
    };
    view! {
        <form class="panel al-form" id="rule" method="post" action="/alerts/rules" aria-label="rule">
            <header><h2>{info.title}</h2><span class="small ink2">{format!("fires when {}", info.when)}</span></header>
            <input r#type="hidden" name="id" value=draft.id.clone()/>
            <input r#type="hidden" name="condition" value=kind.wire()/>
            <input r#type="hidden" name="version" value=editor.version.map(|version| version.to_string()).unwrap_or_default()/>
            {line(editor, "name", "Name", draft.name.clone())}
            <div class="al-grid">{thresholds(editor, kind)}</div>
            <div class="al-grid">
                {line(editor, "for", "For, without a break", draft.for_.clone().unwrap_or_default())}
                {line(editor, "keep_firing_for", "Then keep firing for", draft.keep_firing_for.clone().unwrap_or_default())}
            </div>
            <div class="al-grid">
                {choice("backends", "Backend", backends, draft.backends.first().map_or("", String::as_str))}
                {by_name}{by_lock}
            </div>
            <div class="al-grid">
                {choice("severity", "Severity", severities.to_vec(), &draft.severity)}
                {line(editor, "group_by", "Grouped by", groups)}
                {line(editor, "receivers", "To (empty: every receiver)", draft.receivers.join(", "))}
                {line(editor, "runbook", "Runbook (empty: the documentation)", draft.runbook.clone())}
            </div>
            <div class="al-opt">{optional(template)}</div>
            <label class="al-tick"><input r#type="checkbox" name="enabled" value="yes" checked=draft.enabled/>" On"</label>
            {buttons(editor)}
        </form>
    }
    .into_any()
}

/// A message may be left empty.
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
    let save = editor.version.map_or("Save the rule".to_owned(), |version| {
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
    let kinds = Kind::ALL.map(|kind| {
        let info = kind.info();
        view! {
            <li class="al-r">
                <a class="al-rule" href=format!("/alerts/rules/new?condition={}", info.wire)>{info.title}</a>
                <span class="small ink3">{info.severity.wire()}</span>
                <span class="small ink2">{format!("fires when {}", info.when)}</span>
            </li>
        }
    });
    let why = fault(editor, "condition").filter(|_| !editor.draft.condition.is_empty());
    view! {
        <section class="sec"><header><h2>"Which condition?"</h2></header>
            {why.map(|why| view! { <p class="fault">{why}</p> })}
            <ul class="als">{kinds.into_iter().collect_view()}</ul>
        </section>
    }
    .into_any()
}
