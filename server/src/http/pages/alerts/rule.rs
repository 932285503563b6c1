//! The rule editor: its data, its preview, and the form that saves. A draft travels as the fields of its form.

mod draft;

use app::console::{ConsoleError, ConsoleFuture};
use app::forms::reply::FormReply;
use app::pages::rule_editor::data::{
    FiringRow, NO_SUCH_RULE, PreviewData, PreviewPart, REMOVED_NOTE, RuleEditorData, RuleEditorPort,
    RulePreview, VersionRow,
};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use domain::access::{Permission, Visible};
use domain::alerts::{ConditionKind, Draft, FieldError, Preview, Rule};

use self::draft::{Line, apply_moved_line, draft_of, fields_of, find, new_draft};
use super::{error_text, reply};
use crate::alerts::{AlertError, RuleVersion, path};
use crate::http::pages::caller_data::{CallerData, unavailable};
use crate::http::pages::form_request::FormRequest;
use crate::http::state::{AppState, Services};
use crate::identity::Principal;

/// Versions on the page.
const VERSIONS_MAX: usize = 20;
/// Firings that a preview lists.
const FIRINGS_MAX: usize = 20;

/// A draft as it opens, with the errors of its URL.
struct Opened {
    draft: Draft,
    faults: Vec<FieldError>,
    saved: Option<(Draft, i64)>,
    /// Newest first; none of a new rule.
    versions: Vec<RuleVersion>,
}

impl RuleEditorPort for CallerData {
    fn rule(&self, id: String, search: String) -> ConsoleFuture<'_, RuleEditorData> {
        Box::pin(async move { self.state.rule_data(&self.who, &id, &search).await })
    }

    /// Counts of every lock are in it.
    fn rule_preview(
        &self,
        id: String,
        search: String,
        fields: String,
        is_newest: bool,
    ) -> ConsoleFuture<'_, RulePreview> {
        Box::pin(async move {
            self.check(Permission::Administer)?;
            let request = (id.as_str(), search.as_str(), fields.as_str());
            self.state.rule_preview(&self.who, request, is_newest).await
        })
    }
}

impl Services {
    async fn rule_data(
        &self,
        who: &Principal,
        id: &str,
        search: &str,
    ) -> Result<RuleEditorData, ConsoleError> {
        let visible = Visible::to(&who.grants);
        let opened = self.opened_rule(&visible, id, search).await?;
        let open = self.alerts.open(&visible).await.map_err(rule_unavailable)?;
        let firing = open
            .iter()
            .filter(|open| open.rule.id.as_str() == id && open.kept.alert.is_firing());
        Ok(RuleEditorData {
            id: opened.draft.id.clone(),
            condition: opened.draft.condition.clone(),
            version: opened.saved.as_ref().map(|(_, version)| *version),
            fields: fields_of(&opened.draft),
            saved: opened
                .saved
                .as_ref()
                .map(|(draft, _)| fields_of(draft))
                .unwrap_or_default(),
            faults: opened.faults.iter().map(fault_text).collect(),
            backends: self.backend_choices(who, Permission::View),
            versions: version_rows(&opened.versions),
            firing: u32::try_from(firing.count()).unwrap_or(u32::MAX),
            may_edit: who.may_anywhere(Permission::Administer),
            is_removed: false,
        })
    }

    async fn opened_rule(&self, visible: &Visible, id: &str, search: &str) -> Result<Opened, ConsoleError> {
        let pairs = app::links::pairs(search);
        if id.is_empty() {
            let (draft, faults) = new_draft(&pairs);
            return Ok(Opened {
                draft,
                faults,
                saved: None,
                versions: Vec::new(),
            });
        }
        let stored = self
            .alerts
            .visible_rule(visible, id)
            .await
            .map_err(|error| rule_error(&error))?;
        let saved = Draft::from(&stored.rule);
        let versions = self.alerts.visible_versions(visible, &stored.rule.id).await;
        let versions = versions.map_err(rule_unavailable)?;
        let version_param = pairs.iter().find(|(name, _)| name == "version");
        let mut draft = saved.clone();
        if let Some((_, number)) = version_param {
            let found = versions
                .iter()
                .find(|version| version.version.to_string() == *number);
            let found = found.ok_or_else(|| ConsoleError::NotFound {
                what: "this rule has no such version".to_owned(),
            })?;
            draft = found.draft.clone();
        }
        Ok(Opened {
            draft,
            faults: Vec::new(),
            saved: Some((saved, stored.version)),
            versions,
        })
    }

    async fn rule_preview(
        &self,
        who: &Principal,
        (id, search, fields): (&str, &str, &str),
        is_newest: bool,
    ) -> Result<RulePreview, ConsoleError> {
        let visible = Visible::to(&who.grants);
        let form_fields = app::links::pairs(fields);
        let draft = if form_fields.is_empty() {
            self.opened_rule(&visible, id, search).await?.draft
        } else {
            draft_of(&form_fields)
        };
        if ConditionKind::parse(&draft.condition).is_none() {
            return Ok(RulePreview::default());
        }
        let any_prefix = form_fields.is_empty() || find(&form_fields, "any_prefix") == "yes";
        let rule = match self.alerts.parse(&draft, any_prefix).await {
            Ok(rule) => rule,
            Err(AlertError::Invalid(faults)) => {
                return Ok(RulePreview {
                    faults: faults.iter().map(fault_text).collect(),
                    ..RulePreview::default()
                });
            }
            Err(error) => return Err(unavailable(&error_text(&error).1)),
        };
        let saved = self.alerts.visible_rule(&visible, &draft.id).await.ok();
        let saved = saved.map(|stored| stored.rule).filter(|saved| *saved != rule);
        self.run_preview(rule, saved, is_newest).await
    }

    async fn run_preview(
        &self,
        rule: Rule,
        saved: Option<Rule>,
        is_newest: bool,
    ) -> Result<RulePreview, ConsoleError> {
        let began = self.clock.tick();
        let rules: Vec<Rule> = std::iter::once(rule.clone()).chain(saved.clone()).collect();
        let mut run = self.alerts.preview_run(rules);
        let mut latest = Vec::new();
        // The first part may be the newest only.
        while let Some(part) = Box::pin(run.next()).await {
            latest = part.map_err(|error| {
                tracing::warn!("a preview cannot be computed: {error}");
                unavailable("No preview: the store does not answer. Reload the page to try again.")
            })?;
            if is_newest {
                break;
            }
        }
        let mut previews = latest.into_iter();
        // If it cannot be read, only the mark of simulated data is missing.
        let simulated = self.history.simulated_until().await.ok().flatten();
        Ok(RulePreview {
            faults: Vec::new(),
            edited: previews
                .next()
                .map(|preview| preview_data(&rule, preview, simulated)),
            saved: saved.and_then(|saved| Some(preview_data(&saved, previews.next()?, simulated))),
            took_ms: self.clock.tick().since(began),
        })
    }
}

fn rule_error(error: &AlertError) -> ConsoleError {
    match error {
        AlertError::NotFound(_) => ConsoleError::NotFound {
            what: NO_SUCH_RULE.to_owned(),
        },
        error => unavailable(&error_text(error).1),
    }
}

fn rule_unavailable(error: sqlx::Error) -> ConsoleError {
    tracing::warn!("a rule cannot be read: {error}");
    unavailable(super::STORE_SILENT)
}

fn preview_data(rule: &Rule, preview: Preview, simulated_until: Option<i64>) -> PreviewData {
    let kind = rule.condition.kind;
    let is_falling = kind == ConditionKind::NearExpiry;
    let points = |series: &[domain::alerts::SeriesPoint]| {
        series.iter().map(|point| (point.at, point.measure)).collect()
    };
    let mut parts: Vec<PreviewPart> = Vec::new();
    if preview.unknown.is_none() {
        let main = kind.main_param().map_or("", |param| param.name);
        parts.push(PreviewPart {
            condition: kind.as_str().to_owned(),
            param: main.to_owned(),
            threshold: rule.condition.main_value(),
            is_falling,
            points: points(&preview.series),
        });
        if !preview.held.is_empty() {
            parts.push(PreviewPart {
                condition: kind.as_str().to_owned(),
                param: "longer_than".to_owned(),
                threshold: rule.condition.value("longer_than"),
                is_falling: false,
                points: points(&preview.held),
            });
        }
    }
    let newest = preview.firings.iter().rev().take(FIRINGS_MAX);
    let firings = newest.map(|firing| FiringRow {
        at: firing.at,
        until: firing.until,
        subject: firing.subject.display_name(),
        path: path(&firing.subject),
        owner: firing.owner.clone(),
        measure: firing.measure,
        why: firing.why.clone(),
    });
    PreviewData {
        firings: firings.collect(),
        spans: preview
            .firings
            .iter()
            .map(|firing| (firing.at, firing.until.unwrap_or(preview.to)))
            .collect(),
        from: preview.from,
        to: preview.to,
        is_cut: preview.is_cut,
        is_partial: preview.is_partial,
        unknown: preview.unknown,
        count: preview.count,
        events: preview.events,
        locks: preview.locks,
        acquisitions: preview.acquisitions,
        without_ttl: preview.without_ttl,
        parts,
        gaps: preview.gaps,
        simulated_until: simulated_until.filter(|until| *until > preview.from),
        for_ms: rule.timing.for_ms,
        keep_ms: rule.timing.keep_ms,
    }
}

fn fault_text(fault: &FieldError) -> (String, String) {
    (
        fault.field.clone(),
        format!("It {}: {}.", fault.why, fault.remedy),
    )
}

/// Newest first, each with its changes to its predecessor.
fn version_rows(versions: &[RuleVersion]) -> Vec<VersionRow> {
    let pairs = versions.iter().enumerate().take(VERSIONS_MAX);
    let line = |(index, version): (usize, &RuleVersion)| VersionRow {
        number: version.version,
        at: version.at,
        by: version.by.clone(),
        changes: versions.get(index + 1).map(|before| {
            let changes = version.draft.changes_since(&before.draft).into_iter();
            changes
                .map(|change| (change.field.to_owned(), change.before, change.after))
                .collect()
        }),
    };
    pairs.map(line).collect()
}

pub(in crate::http) async fn post_rule(State(state): State<AppState>, mut form: FormRequest) -> Response {
    let line = apply_moved_line(form.form.fields_mut());
    let fields = form.form.fields();
    let draft = draft_of(fields);
    let any_prefix = find(fields, "any_prefix") == "yes";
    let version = find(fields, "version").parse().ok();
    let is_save = find(fields, "act") == "save";
    let page = match state
        .alerts
        .visible_rule(&Visible::to(&form.who.grants), &draft.id)
        .await
    {
        Ok(stored) => format!("/alerts/rules/{}", stored.rule.id),
        // A new or removed rule: the form keeps its fields.
        Err(_) => {
            let condition = ("condition".to_owned(), draft.condition.clone());
            app::links::with_query("/alerts/rules/new", vec![condition])
        }
    };
    let done = match &line {
        Line::Moved(at) if is_save => Some(format!(
            "Not saved yet: the threshold in the chart was moved to {at}. Check the preview, then save."
        )),
        Line::Overridden => {
            Some("The threshold was changed in the field and in the chart: the field counts.".to_owned())
        }
        Line::Moved(_) | Line::Unmoved => None,
    };
    // No threshold is saved that was not shown as a number.
    if !is_save || matches!(line, Line::Moved(_)) {
        let reply = FormReply {
            done,
            ..FormReply::default()
        };
        return form.reply(&state, &page, StatusCode::OK, reply).await;
    }
    let saved = state.alerts.save_rule(&form.who, draft, version, any_prefix);
    match saved.await {
        Ok(stored) => form.moved(&format!("/alerts/rules/{}?saved", stored.rule.id)),
        Err(error) => {
            let (status, mut reply) = reply(&error);
            if matches!(error, AlertError::NotFound(_)) {
                reply.alert = Some(REMOVED_NOTE.to_owned());
            }
            form.reply(&state, &page, status, reply).await
        }
    }
}
