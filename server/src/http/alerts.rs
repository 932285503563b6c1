//! `/v1/alerts`, `/v1/silences`, and in `alerts/rules.rs` `/v1/rules`: handlers parse, ask the alerts, answer.

mod rules;

use std::sync::Arc;

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::StatusCode;
use domain::access::{Right, Visible};
use domain::alerts::SilenceDraft;
use serde::de::DeserializeOwned;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::audit::Desk;
use super::people::{Asker, Id};
use super::problem::Problem;
use super::wire::alerts::{AckWire, AlertWire, AlertsWire, NewSilenceWire, SilenceWire, SilencesWire};
use crate::alerts::{AlertError, Alerts, path};

const BYTES_MAX: usize = 256 * 1024;

pub(super) fn router<S: Clone + Send + Sync + 'static>(desk: &Desk) -> OpenApiRouter<S> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(ack))
        .routes(routes!(silences, silence))
        .routes(routes!(end))
        .with_state(desk.alerts.clone())
        .merge(rules::router(desk))
}

impl From<AlertError> for Problem {
    fn from(error: AlertError) -> Self {
        match error {
            AlertError::Invalid(faults) => match faults.first() {
                Some(first) => Self::invalid(&first.field, format!("It {}", first.why)).with_mend(Some(
                    faults
                        .iter()
                        .map(ToString::to_string)
                        .collect::<Vec<_>>()
                        .join("; "),
                )),
                None => Self::invalid("rule", "It is not valid".to_owned()),
            },
            AlertError::NotFound(what) => Self::not_found(format!("there is no such {what}")),
            AlertError::Changed { .. } => Self::conflict("changed", error.to_string()),
            AlertError::Forbidden(why) => Self::forbidden(why),
            AlertError::Store(error) => {
                tracing::warn!("alerts cannot be read or written: {error}");
                Self::store_unavailable()
            }
        }
    }
}

async fn read<T: DeserializeOwned>(asker: &Asker, body: Body) -> Result<T, Problem> {
    let bytes = to_bytes(body, BYTES_MAX).await;
    let bytes = bytes.map_err(|_| asker.problem(Problem::invalid("body", "It is too large".to_owned())))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| asker.problem(Problem::invalid("body", format!("It cannot be read: {error}"))))
}

/// What is pending or fires, the gravest first; cut to what the caller may see.
#[utoipa::path(get, path = "/v1/alerts", tag = "alerts", responses((status = 200, body = AlertsWire)))]
async fn list(State(alerts): State<Arc<Alerts>>, asker: Asker) -> Result<Json<AlertsWire>, Problem> {
    let visible = Visible::to(&asker.who.grants);
    let open = alerts.open(&visible).await.map_err(AlertError::from);
    let open = open.map_err(|error| asker.problem(error))?;
    let wire = open.into_iter().map(|open| AlertWire {
        id: open.kept.alert.id.to_string(),
        state: if open.kept.alert.is_firing() {
            "firing"
        } else {
            "pending"
        },
        rule: open.rule.id.to_string(),
        fingerprint: open.fingerprint,
        is_silenced: open.is_silenced,
        labels: open.labels,
        since_ms: open.kept.alert.since(),
        path: path(&open.kept.alert.subject),
        why: open.kept.alert.why,
        acknowledged_by: open.kept.acked.map(|(_, by, _)| by),
        runbook: open.rule.runbook(),
    });
    Ok(Json(AlertsWire {
        alerts: wire.collect(),
    }))
}

/// Somebody has it in hand.
#[utoipa::path(
    post, path = "/v1/alerts/{id}/ack", tag = "alerts", params(("id" = String, Path)), request_body = AckWire,
    responses((status = 204), (status = 404, body = Problem, content_type = "application/problem+json"))
)]
async fn ack(
    State(alerts): State<Arc<Alerts>>,
    Id(id): Id,
    asker: Asker,
    body: Body,
) -> Result<StatusCode, Problem> {
    let ack: AckWire = read(&asker, body).await?;
    let id = id.parse().unwrap_or(0);
    let done = alerts.acknowledge(&asker.who, id, &ack.note).await;
    done.map(|()| StatusCode::NO_CONTENT)
        .map_err(|error| asker.problem(error))
}

/// Those that are not over.
#[utoipa::path(get, path = "/v1/silences", tag = "alerts", responses((status = 200, body = SilencesWire)))]
async fn silences(State(alerts): State<Arc<Alerts>>, asker: Asker) -> Result<Json<SilencesWire>, Problem> {
    let silences = alerts.silences().await.map_err(AlertError::from);
    let silences = silences.map_err(|error| asker.problem(error))?;
    let is_whole = asker.who.grants.may_everywhere(Right::View);
    // Names of others' locks may stand in them.
    let silences = silences.into_iter().filter(|_| is_whole).map(SilenceWire::from);
    Ok(Json(SilencesWire {
        silences: silences.collect(),
    }))
}

/// Keeps alerts quiet for a while. The author is who asks.
#[utoipa::path(
    post, path = "/v1/silences", tag = "alerts", request_body = NewSilenceWire,
    responses(
        (status = 201, body = SilenceWire),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 403, body = Problem, content_type = "application/problem+json")
    )
)]
async fn silence(
    State(alerts): State<Arc<Alerts>>,
    asker: Asker,
    body: Body,
) -> Result<(StatusCode, Json<SilenceWire>), Problem> {
    let wire: NewSilenceWire = read(&asker, body).await?;
    let draft = SilenceDraft {
        matchers: wire
            .matchers
            .into_iter()
            .map(|one| (one.label, one.value))
            .collect(),
        lasts: wire.lasts,
        comment: wire.comment,
    };
    let made = alerts.silence(&asker.who, &draft).await;
    made.map(|silence| (StatusCode::CREATED, Json(silence.into())))
        .map_err(|error| asker.problem(error))
}

/// Ends a silence now.
#[utoipa::path(
    delete, path = "/v1/silences/{id}", tag = "alerts", params(("id" = String, Path)),
    responses((status = 204), (status = 404, body = Problem, content_type = "application/problem+json"))
)]
async fn end(State(alerts): State<Arc<Alerts>>, Id(id): Id, asker: Asker) -> Result<StatusCode, Problem> {
    let ended = alerts.end_silence(&asker.who, &id).await;
    ended
        .map(|()| StatusCode::NO_CONTENT)
        .map_err(|error| asker.problem(error))
}
