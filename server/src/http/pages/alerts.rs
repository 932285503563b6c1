//! `/alerts`: pages without a script; its rules are in `rule.rs`, its silences in `silence.rs`. Handlers parse, ask the alerts,
//! answer with a page or send on to one.

pub(in crate::http) mod rule;
pub(in crate::http) mod silences;

use app::server_pages::alerts::{AlertRow, AlertsPage, Quiet, ResolvedAlert, RuleLine, board};
use app::server_pages::layout::{Chrome, PageSection};
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use domain::access::{Permission, Visible};
use domain::alerts::{Matcher, Rule, Silence};

use crate::alerts::{AlertError, OpenAlert, path};
use crate::http::current_user::CurrentUser;
use crate::http::form_body::Form;
use crate::http::pages::response;
use crate::http::pages::response::see_other;
use crate::http::path_id::PathId;
use crate::http::state::{AppState, Services};
use crate::identity::Principal;

const LINES_MAX: usize = 200;
const OVER_MAX: i64 = 50;

fn chrome(who: &Principal) -> Chrome {
    response::chrome(who, PageSection::Alerts)
}

pub(in crate::http) async fn show(
    State(state): State<AppState>,
    CurrentUser(who): CurrentUser,
    RawQuery(query): RawQuery,
) -> Response {
    let done = match query.as_deref() {
        Some("acked") => Some("Acknowledged."),
        Some("silenced") => Some("Silenced. No notification is sent until the silence ends."),
        Some("ended") => Some("The silence has ended. Notifications of firing alerts are sent now."),
        Some("removed") => Some("The rule is removed; its alerts are resolved."),
        _ => None,
    };
    state.alerts_page(&who, StatusCode::OK, None, done).await
}

impl Services {
    async fn alerts_page(
        &self,
        who: &Principal,
        status: StatusCode,
        refusal: Option<String>,
        done: Option<&'static str>,
    ) -> Response {
        let (status, shown) = match self.alerts_board(who).await {
            Ok(board) => (status, board),
            Err(error) => {
                let refusal = Some(error_text(&error.into()).1);
                let board = AlertsPage {
                    refusal,
                    ..AlertsPage::default()
                };
                (StatusCode::SERVICE_UNAVAILABLE, board)
            }
        };
        let shown = AlertsPage {
            refusal: refusal.or(shown.refusal),
            done: done.map(str::to_owned),
            ..shown
        };
        response::html_response(status, board(&chrome(who), &shown))
    }

    async fn alerts_board(&self, who: &Principal) -> Result<AlertsPage, sqlx::Error> {
        let visible = Visible::to(&who.grants);
        let open = self.alerts.open(&visible).await?;
        let silences = self.alerts.silences().await?;
        let kept = self.alerts.visible_rules(&visible).await?;
        let resolved = self.alerts.resolved(&visible, OVER_MAX).await?;
        let may_act = who.may_anywhere(Permission::Unlock);
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
        let past = resolved.into_iter().map(|one| ResolvedAlert {
            rule: one.rule_name,
            path: path(&one.subject),
            subject: one.subject,
            fired_at: one.fired_at,
            ended_at: one.ended_at,
        });
        let past = past.collect();
        let more = open.len().saturating_sub(LINES_MAX);
        let lines = open.iter().take(LINES_MAX).map(|open| line(open, may_act));
        Ok(AlertsPage {
            lines: lines.collect(),
            more,
            quiet: quiet(&silences, &visible, may_act),
            past,
            rules,
            now: self.now(),
            may_edit: who.may_anywhere(Permission::Administer),
            may_silence: may_act,
            is_limited: !visible.is_everything(),
            refusal: None,
            done: None,
        })
    }
}

fn line(open: &OpenAlert, may_ack: bool) -> AlertRow {
    let OpenAlert { kept, rule, .. } = open;
    AlertRow {
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
fn error_text(error: &AlertError) -> (StatusCode, String) {
    match error {
        AlertError::Invalid(_) => (
            StatusCode::UNPROCESSABLE_ENTITY,
            "A field below is invalid; its error is shown there.".to_owned(),
        ),
        AlertError::NotFound(what) => (
            StatusCode::NOT_FOUND,
            format!("This {what} does not exist any more."),
        ),
        AlertError::Changed { now } => (
            StatusCode::CONFLICT,
            format!("Version {now} has been saved in the meantime. Reload the rule and change that version."),
        ),
        AlertError::Forbidden(why) => (StatusCode::FORBIDDEN, format!("Nothing was done: {why}.")),
        AlertError::Store(error) => {
            tracing::warn!("alerts cannot be read or written: {error}");
            let text =
                "Nothing was changed, because the console's store does not answer. Try again in a moment.";
            (StatusCode::SERVICE_UNAVAILABLE, text.to_owned())
        }
    }
}

pub(in crate::http) async fn ack(
    State(state): State<AppState>,
    CurrentUser(who): CurrentUser,
    PathId(id): PathId,
    form: Form,
) -> Response {
    let done = state
        .alerts
        .acknowledge(&who, id.parse().unwrap_or(0), &form.text("note"))
        .await;
    state.after_alert_change(&who, done, "/alerts?acked").await
}

pub(in crate::http) async fn end(
    State(state): State<AppState>,
    CurrentUser(who): CurrentUser,
    PathId(id): PathId,
) -> Response {
    let done = state.alerts.end_silence(&who, &id).await;
    state.after_alert_change(&who, done, "/alerts?ended").await
}

pub(in crate::http) async fn remove(
    State(state): State<AppState>,
    CurrentUser(who): CurrentUser,
    PathId(id): PathId,
) -> Response {
    let done = state.alerts.remove_rule(&who, &id).await;
    state.after_alert_change(&who, done, "/alerts?removed").await
}

impl Services {
    async fn after_alert_change(
        &self,
        who: &Principal,
        done: Result<(), AlertError>,
        next: &str,
    ) -> Response {
        match done {
            Ok(()) => see_other(next),
            Err(error) => {
                let (status, why) = error_text(&error);
                self.alerts_page(who, status, Some(why), None).await
            }
        }
    }
}

/// Silences may contain names of other tenants' locks: only users who see every lock read them.
fn quiet(silences: &[Silence], visible: &Visible, may_end: bool) -> Vec<Quiet> {
    let shown = silences.iter().filter(|_| visible.is_everything());
    shown
        .map(|silence| Quiet {
            id: silence.id.clone(),
            matchers: silence
                .matchers
                .iter()
                .map(Matcher::display_name)
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
