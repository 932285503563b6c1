//! One rule: its form, filled by a chart or as it is kept, previewed, saved; its versions.

use app::server_pages::alerts::editor::{Editor, editor};
use app::server_pages::alerts::history::Version;
use app::server_pages::alerts::preview::{Foreseen, preview_failed, preview_part};
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use domain::access::{Permission, Visible};
use domain::alerts::{ConditionKind, Draft, FieldError, Preview, Rule, moved_to};
use domain::tick::Tick;
use futures::stream;

use super::{chrome, error_text};
use crate::alerts::{AlertError, PreviewRun, RuleVersion, path};
use crate::http::current_user::CurrentUser;
use crate::http::form_body::Form;
use crate::http::pages::response;
use crate::http::pages::response::see_other;
use crate::http::path_id::PathId;
use crate::http::state::{AppState, Services};
use crate::identity::Principal;
use runtime::clock::Clock;

/// Versions on the page.
const VERSIONS_MAX: usize = 20;

impl Services {
    /// Around a draft: what it would have done, its versions, its faults.
    async fn rule_editor(
        &self,
        who: &Principal,
        status: StatusCode,
        mut shown: Editor,
        any_prefix: bool,
    ) -> Response {
        let visible = Visible::to(&who.grants);
        shown.backends = self.backend_choices(who, Permission::View);
        shown.may_edit = who.may_anywhere(Permission::Administer);
        let saved = self.alerts.visible_rule(&visible, &shown.draft.id).await.ok();
        shown.version = shown.version.or(saved.as_ref().map(|kept| kept.version));
        if let Some(kept) = &saved
            && let Ok(versions) = self.alerts.visible_versions(&visible, &kept.rule.id).await
        {
            shown.versions = version_rows(&versions);
        }
        let mut preview = None;
        // Counts of every lock are in it: for those who may change rules.
        if shown.may_edit && ConditionKind::parse(&shown.draft.condition).is_some() && shown.faults.is_empty()
        {
            match self.alerts.parse(&shown.draft, any_prefix).await {
                Ok(rule) => preview = Some(self.preview_rule(&shown, rule, saved.map(|kept| kept.rule))),
                Err(AlertError::Invalid(faults)) => shown.faults = faults,
                Err(error) => shown.refusal = Some(error_text(&error).1),
            }
        }
        shown.has_preview = preview.is_some();
        let page = editor(&chrome(who), &shown);
        match preview {
            Some(parts) => response::answer_in_parts(status, page.before, parts.into_stream(), page.after),
            None => response::html_response(status, page.before),
        }
    }

    fn preview_rule(&self, shown: &Editor, rule: Rule, saved: Option<Rule>) -> PreviewParts {
        let saved = saved.filter(|saved| *saved != rule);
        let rules = std::iter::once(rule.clone()).chain(saved.clone());
        PreviewParts {
            run: self.alerts.preview_run(rules.collect()),
            clock: self.clock.clone(),
            began: self.clock.tick(),
            rule,
            saved,
            draft: shown.draft.clone(),
            may_edit: shown.may_edit,
        }
    }
}

/// A preview on its way into a page, part by part. The browser that leaves ends it.
struct PreviewParts {
    run: PreviewRun,
    clock: Clock,
    began: Tick,
    rule: Rule,
    saved: Option<Rule>,
    draft: Draft,
    may_edit: bool,
}

impl PreviewParts {
    fn into_stream(self) -> impl stream::Stream<Item = String> + Send + 'static {
        stream::unfold(self, |mut parts| async move {
            let part = match parts.run.next().await? {
                Ok(previews) => parts.part(previews),
                Err(error) => {
                    tracing::warn!("a preview cannot be made: {error}");
                    preview_failed()
                }
            };
            Some((part, parts))
        })
    }

    fn part(&self, previews: Vec<Preview>) -> String {
        let mut previews = previews.into_iter();
        let preview = previews.next().unwrap_or_default();
        let newest = preview.firings.iter().rev().take(20);
        let threshold = self.saved.as_ref().map(|saved| saved.condition.main_value());
        preview_part(&Foreseen {
            paths: newest.map(|firing| path(&firing.subject)).collect(),
            preview,
            rule: self.rule.clone(),
            draft: self.draft.clone(),
            took_ms: self.clock.tick().since(self.began),
            saved: previews.next().zip(threshold),
            may_edit: self.may_edit,
        })
    }
}

/// Newest first, each with its predecessor.
fn version_rows(versions: &[RuleVersion]) -> Vec<Version> {
    let pairs = versions.iter().enumerate().take(VERSIONS_MAX);
    let line = |(index, version): (usize, &RuleVersion)| Version {
        number: version.version,
        at: version.at,
        by: version.by.clone(),
        changes: versions
            .get(index + 1)
            .map(|before| version.draft.changes_since(&before.draft)),
    };
    pairs.map(line).collect()
}

/// `?condition=contention&prefix=jobs/&backends=redis&threshold=60%`: a chart's way to "alert me above this"; a threshold by
/// its own name as in the form, `with.longer_than=90s`.
pub(in crate::http) async fn new_rule(
    State(state): State<AppState>,
    CurrentUser(who): CurrentUser,
    RawQuery(query): RawQuery,
) -> Response {
    let pairs = app::links::pairs(query.as_deref().unwrap_or_default());
    let find = |name: &str| {
        let found = pairs.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let kind = ConditionKind::parse(&find("condition"));
    let base = kind.and_then(|kind| {
        domain::alerts::builtin()
            .into_iter()
            .find(|rule| rule.condition.kind == kind)
    });
    let mut draft = base.as_ref().map(Draft::from).unwrap_or_default();
    draft.id = String::new();
    draft.prefix = find("prefix");
    let backend = ["backends", "backend"]
        .map(find)
        .into_iter()
        .find(|name| !name.is_empty());
    draft.backends = backend.into_iter().collect();
    let given = find("threshold");
    if let Some(main) = kind
        .and_then(ConditionKind::main_param)
        .filter(|_| !given.is_empty())
    {
        draft.with.insert(main.name.to_owned(), given);
    }
    for param in kind
        .map(ConditionKind::info)
        .into_iter()
        .flat_map(|info| info.params)
    {
        let given = find(&format!("with.{}", param.name));
        if !given.is_empty() {
            draft.with.insert(param.name.to_owned(), given);
        }
    }
    if base.is_none() {
        draft.condition = find("condition");
    } else if !draft.prefix.is_empty() {
        draft.name = format!("{}, {}", draft.name, draft.prefix);
    }
    let faults = if draft.condition.is_empty() || kind.is_some() {
        Vec::new()
    } else {
        vec![FieldError::new(
            "condition",
            "is no condition",
            "choose one below",
        )]
    };
    let shown = Editor {
        draft,
        faults,
        ..Editor::default()
    };
    Box::pin(state.rule_editor(&who, StatusCode::OK, shown, false)).await
}

pub(in crate::http) async fn show(
    State(state): State<AppState>,
    CurrentUser(who): CurrentUser,
    PathId(id): PathId,
    RawQuery(query): RawQuery,
) -> Response {
    let visible = Visible::to(&who.grants);
    match state.alerts.visible_rule(&visible, &id).await {
        Ok(kept) => {
            let done = (query.as_deref() == Some("saved"))
                .then(|| format!("Saved as version {}. It is in effect.", kept.version));
            let shown = Editor {
                draft: Draft::from(&kept.rule),
                version: Some(kept.version),
                done,
                ..Editor::default()
            };
            Box::pin(state.rule_editor(&who, StatusCode::OK, shown, true)).await
        }
        Err(error) => {
            let (status, why) = error_text(&error);
            state.alerts_page(&who, status, Some(why), None).await
        }
    }
}

fn draft_of(form: &Form) -> Draft {
    let list = |name: &str| -> Vec<String> {
        let text = form.text(name);
        let words = text.split(',').map(|word| word.trim().to_owned());
        words.filter(|word| !word.is_empty()).collect()
    };
    let condition = form.text("condition");
    let params = ConditionKind::parse(&condition)
        .map(|kind| kind.info().params)
        .unwrap_or_default();
    let with = params.iter().filter_map(|param| {
        let value = form.find(&format!("with.{}", param.name))?;
        Some((param.name.to_owned(), value))
    });
    Draft {
        id: form.text("id"),
        name: form.text("name"),
        severity: form.text("severity"),
        for_: form.find("for"),
        keep_firing_for: form.find("keep_firing_for"),
        backends: list("backends"),
        prefix: form.text("prefix"),
        owner: form.text("owner"),
        safety: form.text("safety"),
        group_by: Some(list("group_by")),
        receivers: list("receivers"),
        runbook: form.text("runbook"),
        template: form.text("template"),
        enabled: form.text("enabled") == "yes",
        with: with.collect(),
        condition,
    }
}

/// State of the threshold line in the preview's chart.
enum Line {
    Still,
    /// Its threshold is in the draft now.
    Moved(String),
    /// So was the number, which counts: it was typed.
    Outdone,
}

/// Of number and line that one counts which is not as it was shown.
fn follow_the_line(form: &Form, draft: &mut Draft) -> Line {
    let Some(main) = ConditionKind::parse(&draft.condition).and_then(ConditionKind::main_param) else {
        return Line::Still;
    };
    let suffix = form.text("line.unit");
    let [at, was] = ["line", "line.was"].map(|name| {
        form.find(name)
            .and_then(|number| moved_to(main, &number, &suffix))
    });
    let (Some(at), Some(was)) = (at, was) else {
        return Line::Still;
    };
    let typed = draft.with.get(main.name).map(|text| text.trim());
    if at == was || typed == Some(main.unit.text(at).as_str()) {
        return Line::Still;
    }
    if typed != form.find("line.typed").as_deref().map(str::trim) {
        return Line::Outdone;
    }
    draft.with.insert(main.name.to_owned(), main.unit.text(at));
    Line::Moved(main.unit.format(at))
}

pub(in crate::http) async fn post_rule(
    State(state): State<AppState>,
    CurrentUser(who): CurrentUser,
    form: Form,
) -> Response {
    let mut draft = draft_of(&form);
    let line = follow_the_line(&form, &mut draft);
    let any_prefix = form.text("any_prefix") == "yes";
    let version = form.text("version").parse().ok();
    let is_save = form.text("act") == "save";
    let done = match &line {
        Line::Moved(at) if is_save => Some(format!(
            "Not saved yet: the threshold in the chart was moved to {at}. Check the preview, then save."
        )),
        Line::Outdone => {
            Some("The threshold was changed in the field and in the chart: the field counts.".to_owned())
        }
        Line::Moved(_) | Line::Still => None,
    };
    let is_read = !matches!(line, Line::Moved(_));
    let shown = Editor {
        draft: draft.clone(),
        version,
        done,
        ..Editor::default()
    };
    // A threshold is saved only after its number was shown.
    if !is_save || !is_read {
        return Box::pin(state.rule_editor(&who, StatusCode::OK, shown, any_prefix)).await;
    }
    match state.alerts.save_rule(&who, draft, version, any_prefix).await {
        Ok(kept) => see_other(&format!("/alerts/rules/{}?saved", kept.rule.id)),
        Err(error) => {
            let (status, why) = error_text(&error);
            let faults = match error {
                AlertError::Invalid(faults) => faults,
                _ => Vec::new(),
            };
            let shown = Editor {
                faults,
                refusal: Some(why),
                done: None,
                ..shown
            };
            Box::pin(state.rule_editor(&who, status, shown, any_prefix)).await
        }
    }
}
