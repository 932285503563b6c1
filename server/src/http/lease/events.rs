//! `GET /v1/locks/{leaseId}/events`: the owner learns within a second that its lease was renewed or lost.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use chrono::{DateTime, Utc};
use domain::lease::{EndCause, LeaseId};
use futures::stream::{self, Stream};
use serde::Serialize;
use utoipa::ToSchema;

use super::context::Context;
use super::dto::moment;
use super::read::lease_id;
use crate::http::problem::Problem;
use lease::{LeaseChange, LeaseEvent, LeaseService};

/// Shows the client a broken connection.
const BEAT: Duration = Duration::from_secs(5);

/// Data of `renewed`, `revoked`, `expired` and `released`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "LeaseEvent")]
pub struct EventDto {
    #[serde(rename = "type")]
    kind: &'static str,
    #[schema(value_type = String)]
    lease_id: LeaseId,
    resource: String,
    fencing_token: u64,
    at: DateTime<Utc>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit_id: Option<String>,
}

/// Renewals and the loss of a lease. The stream ends with the loss; a stream opened after it has that event only.
#[utoipa::path(
    get, path = "/v1/locks/{leaseId}/events", tag = "leases",
    params(("leaseId" = String, Path)),
    responses(
        (status = 200, body = EventDto, content_type = "text/event-stream"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")
    )
)]
pub(in crate::http) async fn events(
    State(service): State<Arc<LeaseService>>,
    context: Context,
    path: Result<Path<String>, PathRejection>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let id = lease_id(path).map_err(|error| context.problem(error))?;
    let events = service
        .events(&context.caller, id)
        .await
        .map_err(|error| context.problem(error))?;
    let stop = service.stopping().clone();
    let stream = stream::unfold((events, stop), |(mut events, stop)| async move {
        let event = tokio::select! {
            event = events.recv() => event?,
            // A graceful shutdown waits for open streams.
            () = stop.cancelled() => return None,
        };
        let wire = EventDto::from(event);
        let event = Event::default().event(wire.kind).json_data(wire).ok()?;
        Some((Ok(event), (events, stop)))
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(BEAT)))
}

impl From<LeaseEvent> for EventDto {
    fn from(event: LeaseEvent) -> Self {
        let (kind, remaining_ms, revocation) = match event.what {
            LeaseChange::Renewed { remaining_ms } => ("renewed", Some(remaining_ms), None),
            LeaseChange::Ended(EndCause::Revoked(revocation)) => ("revoked", None, Some(revocation)),
            LeaseChange::Ended(how @ (EndCause::Released | EndCause::Expired)) => (how.as_str(), None, None),
        };
        let text_of = |pick: fn(&domain::lease::Revocation) -> &Arc<str>| {
            revocation.as_ref().map(|it| pick(it).to_string())
        };
        Self {
            kind,
            lease_id: event.lease.id,
            resource: event.resource.text(),
            fencing_token: event.lease.token.number(),
            at: moment(event.at),
            remaining_ms,
            by: text_of(|it| &it.by),
            reason: text_of(|it| &it.reason),
            audit_id: text_of(|it| &it.audit_id),
        }
    }
}
