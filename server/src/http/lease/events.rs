//! `GET /v1/locks/{leaseId}/events`: the owner hears within a second what becomes of its lease.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use chrono::{DateTime, Utc};
use domain::lease::{How, LeaseId};
use futures::stream::{self, Stream};
use serde::Serialize;
use utoipa::ToSchema;

use super::context::Context;
use super::read::lease_id;
use super::wire::moment;
use crate::http::problem::Problem;
use crate::lease::{LeaseChange, LeaseEvent, LeaseService};

/// So that a cut line shows.
const BEAT: Duration = Duration::from_secs(5);

/// Data of `renewed`, `revoked`, `expired` and `released`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "LeaseEvent")]
pub struct EventWire {
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

/// What becomes of a lease. Ends with its loss; after that it is this one event.
#[utoipa::path(
    get, path = "/v1/locks/{leaseId}/events", tag = "leases",
    params(("leaseId" = String, Path)),
    responses(
        (status = 200, body = EventWire, content_type = "text/event-stream"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")
    )
)]
pub(super) async fn events(
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
            // Open streams would keep a graceful shutdown waiting for ever.
            () = stop.cancelled() => return None,
        };
        let wire = EventWire::from(event);
        let event = Event::default().event(wire.kind).json_data(wire).ok()?;
        Some((Ok(event), (events, stop)))
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(BEAT)))
}

impl From<LeaseEvent> for EventWire {
    fn from(event: LeaseEvent) -> Self {
        let (kind, remaining_ms, revocation) = match event.what {
            LeaseChange::Renewed { remaining_ms } => ("renewed", Some(remaining_ms), None),
            LeaseChange::Ended(How::Revoked(revocation)) => ("revoked", None, Some(revocation)),
            LeaseChange::Ended(how @ (How::Released | How::Expired)) => (how.wire(), None, None),
        };
        let word = |pick: fn(&domain::lease::Revocation) -> &Arc<str>| {
            revocation.as_ref().map(|it| pick(it).to_string())
        };
        Self {
            kind,
            lease_id: event.lease.id,
            resource: event.resource.text(),
            fencing_token: event.lease.token.number(),
            at: moment(event.at),
            remaining_ms,
            by: word(|it| &it.by),
            reason: word(|it| &it.reason),
            audit_id: word(|it| &it.audit_id),
        }
    }
}
