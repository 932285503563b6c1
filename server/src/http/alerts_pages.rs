//! `/alerts`: pages without a script; its rules are in `rule.rs`, its silences in `silence.rs`. Handlers parse, ask the alerts,
//! answer with a page or send on to one.

mod rule;
mod silence;

use std::sync::Arc;

use app::forms::alerts::{Board, Line, Past, Quiet, RuleLine, board};
use app::forms::chrome::{Chrome, Place};
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use domain::access::{Right, Visible};
use domain::alerts::{Matcher, Rule, Silence};

use super::form_page;
use super::pages;
use super::people::Id;
use super::settings::form::Form;
use super::settings::{Settings, Viewer, on_to};
use crate::alerts::{AlertError, Alerts, OpenAlert, path};
use crate::identity::Who;

const LINES_MAX: usize = 200;
const OVER_MAX: i64 = 50;

struct Asked {
    alerts: Arc<Alerts>,
    settings: Arc<Settings>,
}

pub(super) fn router(alerts: Arc<Alerts>, settings: Arc<Settings>) -> Router {
    Router::new()
        .route("/alerts", get(show))
        .route("/alerts/{id}/ack", post(ack))
        .route("/alerts/rules/new", get(rule::new_rule))
        .route("/alerts/rules", post(rule::post_rule))
        .route("/alerts/rules/{id}", get(rule::show))
        .route("/alerts/rules/{id}/remove", post(remove))
        .route("/alerts/silences/new", get(silence::new_silence))
        .route("/alerts/silences", post(silence::post_silence))
        .route("/alerts/silences/{id}/end", post(end))
        .layer(axum::middleware::map_response(pages::set_headers))
        .with_state(Arc::new(Asked { alerts, settings }))
}

fn chrome(who: &Who) -> Chrome {
    form_page::chrome(who, Place::Alerts)
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
        let kept = self.alerts.visible_rules(&visible).await?;
        let resolved = self.alerts.resolved(&visible, OVER_MAX).await?;
        let may_act = who.may_anywhere(Right::Unlock);
        let firing_of = |rule: &Rule| {
            let of_rule = open
                .iter()
                .filter(|open| open.kept.alert.rule == rule.id && open.kept.alert.is_firing());
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
        let past = resolved.into_iter().map(|one| Past {
            rule: one.rule_name,
            path: path(&one.subject),
            subject: one.subject,
            fired_at: one.fired_at,
            ended_at: one.ended_at,
        });
        let past = past.collect();
        let more = open.len().saturating_sub(LINES_MAX);
        let lines = open.iter().take(LINES_MAX).map(|open| line(open, may_act));
        Ok(Board {
            lines: lines.collect(),
            more,
            quiet: quiet(&silences, &visible, may_act),
            past,
            rules,
            now: self.settings.now(),
            may_edit: who.may_anywhere(Right::Administer),
            may_silence: may_act,
            is_limited: !visible.is_everything(),
            refusal: None,
            done: None,
        })
    }
}

fn line(open: &OpenAlert, may_ack: bool) -> Line {
    let OpenAlert { kept, rule, .. } = open;
    Line {
        id: kept.alert.id,
        rule_path: open.is_rule_visible.then(|| format!("/alerts/rules/{}", rule.id)),
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
        is_silenced: open.is_silenced,
        may_ack,
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
