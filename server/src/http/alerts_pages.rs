//! `/alerts`: pages without a script. Handlers parse, ask the alerts, answer with a page or send on to one.

use std::sync::Arc;

use app::forms::alerts::editor::{Editor, editor};
use app::forms::alerts::silence::{MATCHERS, NewSilence, silence};
use app::forms::alerts::{Board, Line, Past, Quiet, RuleLine, board, runbooks};
use app::forms::chrome::{Chrome, Place};
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use domain::access::{Right, Visible};
use domain::alerts::{Draft, Fault, Kind, Matcher, Rule, Silence, SilenceDraft};

use super::form_page;
use super::pages;
use super::people::Id;
use super::settings::form::Form;
use super::settings::{Settings, Viewer, on_to};
use crate::alerts::{AlertError, Alerts, path};
use crate::identity::Who;

const LINES_MAX: usize = 200;
const OVER_MAX: i64 = 50;
const MANUAL: &str = include_str!("../../../docs/alerts.md");

struct Asked {
    alerts: Arc<Alerts>,
    settings: Arc<Settings>,
}

pub(super) fn router(alerts: Arc<Alerts>, settings: Arc<Settings>) -> Router {
    Router::new()
        .route("/alerts", get(show))
        .route("/alerts/{id}/ack", post(ack))
        .route("/alerts/rules/new", get(new_rule))
        .route("/alerts/rules", post(post_rule))
        .route("/alerts/rules/{id}", get(rule))
        .route("/alerts/rules/{id}/remove", post(remove))
        .route("/alerts/silences/new", get(new_silence))
        .route("/alerts/silences", post(post_silence))
        .route("/alerts/silences/{id}/end", post(end))
        .route("/docs/alerts", get(manual))
        .layer(axum::middleware::map_response(pages::set_headers))
        .with_state(Arc::new(Asked { alerts, settings }))
}

fn chrome(who: &Who) -> Chrome {
    form_page::chrome(who, Place::Alerts)
}

async fn manual(Viewer(who): Viewer) -> Response {
    form_page::answer(StatusCode::OK, runbooks::runbooks(&chrome(&who), MANUAL))
}

async fn show(State(asked): State<Arc<Asked>>, Viewer(who): Viewer, RawQuery(query): RawQuery) -> Response {
    let done = match query.as_deref() {
        Some("acked") => Some("Acknowledged."),
        Some("silenced") => Some("Silenced. Nobody is told until it ends."),
        Some("ended") => Some("The silence is over. What still fires is told now."),
        Some("removed") => Some("The rule is removed; what it fired is told to be over."),
        _ => None,
    };
    asked.page(&who, StatusCode::OK, None, done).await
}

impl Asked {
    async fn page(
        &self,
        who: &Who,
        status: StatusCode,
        refusal: Option<String>,
        done: Option<&'static str>,
    ) -> Response {
        let (status, shown) = match self.board(who).await {
            Ok(board) => (status, board),
            Err(error) => {
                let refusal = Some(said(&error.into()).1);
                let board = Board {
                    refusal,
                    ..Board::default()
                };
                (StatusCode::SERVICE_UNAVAILABLE, board)
            }
        };
        let shown = Board {
            refusal: refusal.or(shown.refusal),
            done: done.map(str::to_owned),
            ..shown
        };
        form_page::answer(status, board(&chrome(who), &shown))
    }

    async fn board(&self, who: &Who) -> Result<Board, sqlx::Error> {
        let visible = Visible::to(&who.grants);
        let open = self.alerts.open(&visible).await?;
        let silences = self.alerts.silences().await?;
        let kept = self.alerts.rules().await?;
        let over = self.alerts.over(&visible, OVER_MAX).await?;
        let may_act = who.may_anywhere(Right::Unlock);
        let firing_of = |rule: &Rule| {
            let of_rule = open
                .iter()
                .filter(|(alert, of, _)| of.id == rule.id && alert.alert.is_firing());
            of_rule.count()
        };
        let rules = kept.iter().map(|kept| RuleLine {
            id: kept.rule.id.to_string(),
            name: kept.rule.name.clone(),
            severity: kept.rule.severity,
            sentence: kept.rule.condition.sentence(),
            is_enabled: kept.rule.is_enabled,
            firing: firing_of(&kept.rule),
        });
        let rules = rules.collect();
        let name_of = |id: &str| {
            let found = kept.iter().find(|kept| kept.rule.id.as_str() == id);
            found.map_or_else(|| id.to_owned(), |kept| kept.rule.name.clone())
        };
        let past = over.into_iter().map(|one| Past {
            rule: name_of(&one.rule),
            path: path(&one.subject),
            subject: one.subject,
            fired_at: one.fired_at,
            ended_at: one.ended_at,
        });
        let past = past.collect();
        let more = open.len().saturating_sub(LINES_MAX);
        let lines = open.iter().take(LINES_MAX).map(|(kept, rule, labels)| Line {
            id: kept.alert.id,
            rule_id: rule.id.to_string(),
            rule: rule.name.clone(),
            severity: rule.severity,
            is_firing: kept.alert.is_firing(),
            subject: kept.alert.subject.clone(),
            path: path(&kept.alert.subject),
            why: kept.alert.why.clone(),
            runbook: rule.runbook(),
            since: kept.alert.since(),
            for_ms: rule.timing.for_ms,
            acked_by: kept.acked.as_ref().map(|(_, by, _)| by.clone()),
            is_silenced: silences.iter().any(|silence| silence.matches(labels)),
            may_ack: may_act,
        });
        Ok(Board {
            lines: lines.collect(),
            more,
            quiet: quiet(&silences, &visible, may_act),
            past,
            rules,
            now: self.settings.now(),
            may_edit: who.may_anywhere(Right::Administer),
            may_silence: may_act,
            refusal: None,
            done: None,
        })
    }

    /// Around a draft: what it would have done, its versions, its faults.
    async fn editor(&self, who: &Who, status: StatusCode, mut shown: Editor, any_prefix: bool) -> Response {
        shown.backends = self.settings.backends.names();
        shown.may_edit = who.may_anywhere(Right::Administer);
        let saved = self.alerts.rule(&shown.draft.id).await.ok();
        shown.version = shown.version.or(saved.as_ref().map(|kept| kept.version));
        if let Some(kept) = &saved
            && let Ok(versions) = self.alerts.versions(&kept.rule.id).await
        {
            let line = |version: crate::alerts::RuleVersion| (version.version, version.at, version.by);
            shown.versions = versions.into_iter().map(line).collect();
        }
        // Counts of every lock are in it: for those who may change rules.
        if shown.may_edit && Kind::parse(&shown.draft.condition).is_some() && shown.faults.is_empty() {
            match self.alerts.parse(&shown.draft, any_prefix).await {
                Ok(rule) => self.foresee(&mut shown, rule, saved.map(|kept| kept.rule)).await,
                Err(AlertError::Invalid(faults)) => shown.faults = faults,
                Err(error) => shown.refusal = Some(said(&error).1),
            }
        }
        form_page::answer(status, editor(&chrome(who), &shown))
    }

    async fn foresee(&self, shown: &mut Editor, rule: Rule, saved: Option<Rule>) {
        let began = self.settings.clock.tick();
        let Ok(preview) = self.alerts.preview(&rule).await else {
            return;
        };
        let took_ms = self.settings.clock.tick().since(began);
        let newest = preview.firings.iter().rev().take(20);
        shown.paths = newest.map(|firing| path(&firing.subject)).collect();
        if let Some(saved) = saved.filter(|saved| *saved != rule)
            && let Ok(before) = self.alerts.preview(&saved).await
        {
            shown.saved_count = Some(before.count);
        }
        shown.preview = Some((preview, rule, took_ms));
    }
}

/// Status and sentence of a refusal.
fn said(error: &AlertError) -> (StatusCode, String) {
    match error {
        AlertError::Invalid(_) => (
            StatusCode::UNPROCESSABLE_ENTITY,
            "A field below does not fit; it says why.".to_owned(),
        ),
        AlertError::NotFound(what) => (
            StatusCode::NOT_FOUND,
            format!("There is no such {what} any more."),
        ),
        AlertError::Changed { now } => (
            StatusCode::CONFLICT,
            format!("Somebody else has saved version {now} since. Open the rule anew and change that."),
        ),
        AlertError::Forbidden(why) => (StatusCode::FORBIDDEN, format!("Nothing was done: {why}.")),
        AlertError::Store(error) => {
            tracing::warn!("alerts cannot be read or written: {error}");
            let text = "The console's store does not answer, so nothing is done. Try again in a moment.";
            (StatusCode::SERVICE_UNAVAILABLE, text.to_owned())
        }
    }
}

async fn ack(State(asked): State<Arc<Asked>>, Viewer(who): Viewer, Id(id): Id, form: Form) -> Response {
    let done = asked
        .alerts
        .acknowledge(&who, id.parse().unwrap_or(0), &form.text("note"))
        .await;
    asked.on(&who, done, "/alerts?acked").await
}

async fn end(State(asked): State<Arc<Asked>>, Viewer(who): Viewer, Id(id): Id) -> Response {
    let done = asked.alerts.end_silence(&who, &id).await;
    asked.on(&who, done, "/alerts?ended").await
}

async fn remove(State(asked): State<Arc<Asked>>, Viewer(who): Viewer, Id(id): Id) -> Response {
    let done = asked.alerts.remove_rule(&who, &id).await;
    asked.on(&who, done, "/alerts?removed").await
}

impl Asked {
    async fn on(&self, who: &Who, done: Result<(), AlertError>, next: &str) -> Response {
        match done {
            Ok(()) => on_to(next),
            Err(error) => {
                let (status, why) = said(&error);
                self.page(who, status, Some(why), None).await
            }
        }
    }
}

/// `?condition=contention&prefix=jobs/&backends=redis&threshold=60%`: a chart's way to "alert me above this"; a threshold by
/// its own name as in the form, `with.longer_than=90s`.
async fn new_rule(
    State(asked): State<Arc<Asked>>,
    Viewer(who): Viewer,
    RawQuery(query): RawQuery,
) -> Response {
    let pairs = app::links::pairs(query.as_deref().unwrap_or_default());
    let find = |name: &str| {
        let found = pairs.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let kind = Kind::parse(&find("condition"));
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
    if let Some(main) = kind.and_then(Kind::main_param).filter(|_| !given.is_empty()) {
        draft.with.insert(main.name.to_owned(), given);
    }
    for param in kind.map(Kind::info).into_iter().flat_map(|info| info.params) {
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
        vec![Fault::new("condition", "is no condition", "choose one below")]
    };
    let shown = Editor {
        draft,
        faults,
        ..Editor::default()
    };
    Box::pin(asked.editor(&who, StatusCode::OK, shown, false)).await
}

async fn rule(
    State(asked): State<Arc<Asked>>,
    Viewer(who): Viewer,
    Id(id): Id,
    RawQuery(query): RawQuery,
) -> Response {
    match asked.alerts.rule(&id).await {
        Ok(kept) => {
            let done = (query.as_deref() == Some("saved"))
                .then(|| format!("Saved as version {}. It counts from now on.", kept.version));
            let shown = Editor {
                draft: Draft::from(&kept.rule),
                version: Some(kept.version),
                done,
                ..Editor::default()
            };
            Box::pin(asked.editor(&who, StatusCode::OK, shown, true)).await
        }
        Err(error) => {
            let (status, why) = said(&error);
            asked.page(&who, status, Some(why), None).await
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
    let params = Kind::parse(&condition)
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

async fn post_rule(State(asked): State<Arc<Asked>>, Viewer(who): Viewer, form: Form) -> Response {
    let draft = draft_of(&form);
    let any_prefix = form.text("any_prefix") == "yes";
    let version = form.text("version").parse().ok();
    let shown = Editor {
        draft: draft.clone(),
        version,
        ..Editor::default()
    };
    if form.text("act") != "save" {
        return Box::pin(asked.editor(&who, StatusCode::OK, shown, any_prefix)).await;
    }
    match asked.alerts.save_rule(&who, draft, version, any_prefix).await {
        Ok(kept) => on_to(&format!("/alerts/rules/{}?saved", kept.rule.id)),
        Err(error) => {
            let (status, why) = said(&error);
            let faults = match error {
                AlertError::Invalid(faults) => faults,
                _ => Vec::new(),
            };
            let shown = Editor {
                faults,
                refusal: Some(why),
                ..shown
            };
            Box::pin(asked.editor(&who, status, shown, any_prefix)).await
        }
    }
}

async fn new_silence(Viewer(who): Viewer, RawQuery(query): RawQuery) -> Response {
    let pairs = app::links::pairs(query.as_deref().unwrap_or_default());
    let shown = NewSilence {
        draft: SilenceDraft {
            matchers: pairs.into_iter().take(MATCHERS.len()).collect(),
            ..SilenceDraft::default()
        },
        ..NewSilence::default()
    };
    form_page::answer(StatusCode::OK, silence(&chrome(&who), &shown))
}

async fn post_silence(State(asked): State<Arc<Asked>>, Viewer(who): Viewer, form: Form) -> Response {
    let matchers = MATCHERS.map(|(label, value)| (form.text(label), form.text(value)));
    let draft = SilenceDraft {
        matchers: matchers.to_vec(),
        lasts: form.text("lasts"),
        comment: form.text("comment"),
    };
    let mut shown = NewSilence {
        draft: draft.clone(),
        ..NewSilence::default()
    };
    let error = if form.text("act") == "save" {
        match asked.alerts.silence(&who, &draft).await {
            Ok(_) => return on_to("/alerts?silenced"),
            Err(error) => error,
        }
    } else {
        let visible = Visible::to(&who.grants);
        match asked.alerts.would_silence(&visible, &draft).await {
            Ok(count) => {
                shown.matches = Some(count);
                return form_page::answer(StatusCode::OK, silence(&chrome(&who), &shown));
            }
            Err(error) => error,
        }
    };
    let (status, why) = said(&error);
    shown.refusal = Some(why);
    if let AlertError::Invalid(faults) = error {
        shown.faults = faults;
    }
    form_page::answer(status, silence(&chrome(&who), &shown))
}

/// Names of others' locks may stand in silences: they are for those who see everything.
fn quiet(silences: &[Silence], visible: &Visible, may_end: bool) -> Vec<Quiet> {
    let shown = silences.iter().filter(|_| visible.is_everything());
    shown
        .map(|silence| Quiet {
            id: silence.id.clone(),
            matchers: silence
                .matchers
                .iter()
                .map(Matcher::shown)
                .collect::<Vec<_>>()
                .join(", "),
            comment: silence.comment.clone(),
            by: silence.by.clone(),
            ends_at: silence.ends_at,
            suppressed: silence.suppressed,
            may_end,
        })
        .collect()
}
