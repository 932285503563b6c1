//! `POST /v1/locks/acquire`

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderName;
use domain::lease::limits::WAIT_SECONDS_MAX;
use domain::lease::{Invalid, Ttl, names};

use super::body::{BodyError, Fields};
use super::context::Context;
use super::wire::{AcquireWire, AcquiredWire, GrantedWire, RefusedWire, moment};
use crate::http::problem::Problem;
use crate::lease::{AcquireRequest, Acquired, LeaseService};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Takes the lock of a resource, or says who has it.
///
/// A refusal is 200 with `acquired: false`. The same `Idempotency-Key` and body within 10 minutes give the same lease.
#[utoipa::path(
    post, path = "/v1/locks/acquire", tag = "leases",
    params(("Idempotency-Key" = Option<String>, Header, description = "1 to 128 visible ASCII characters")),
    request_body = AcquireWire,
    responses(
        (status = 200, body = AcquiredWire),
        (status = 400, body = Problem, content_type = "application/problem+json", description = "A field is invalid, or the name is `reserved`"),
        (status = 403, body = Problem, content_type = "application/problem+json", description = "`out_of_scope`"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "The key was used for another body"),
        (status = 410, body = Problem, content_type = "application/problem+json", description = "The key's lease is lost"),
        (status = 413, body = Problem, content_type = "application/problem+json"),
        (status = 415, body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "Ask again with the same key")
    )
)]
pub(super) async fn acquire(
    State(service): State<Arc<LeaseService>>,
    context: Context,
    body: Body,
) -> Result<Json<AcquiredWire>, Problem> {
    let request = parse(&service, &context, body)
        .await
        .map_err(|error| context.problem(error))?;
    let waits = !request.wait.is_zero();
    // Where it is, so that it is not moved.
    let mut acquiring = std::pin::pin!(service.acquire(&context.caller, request));
    let acquired = match &context.standing {
        // Who is not let in any more when its turn comes has left the line.
        Some(standing) if waits => tokio::select! {
            acquired = &mut acquiring => acquired,
            () = standing.gone() => {
                let problem = Problem::unauthenticated("This token was revoked, has expired or may do something else now");
                return Err(problem.with_request_id(&context.headers));
            }
        },
        _ => acquiring.await,
    };
    acquired
        .map(|it| Json(AcquiredWire::from(it)))
        .map_err(|error| context.problem(error))
}

async fn parse(service: &LeaseService, context: &Context, body: Body) -> Result<AcquireRequest, BodyError> {
    let mut keys = context.headers.get_all(&IDEMPOTENCY_KEY).iter();
    let key = keys
        .next()
        .map(|key| names::idempotency_key(key.as_bytes()))
        .transpose()?;
    if keys.next().is_some() {
        return Err(Invalid::new("Idempotency-Key", "must be given once").into());
    }
    let mut fields = Fields::read(&context.headers, body).await?;
    let request = AcquireRequest {
        resource: names::resource(&fields.text("resource")?)?,
        owner: names::owner(&fields.text("ownerId")?)?,
        ttl: Ttl::parse(fields.whole("ttlSeconds")?, service.ttl_seconds_max())?,
        wait: wait(fields.optional_whole("waitSeconds")?)?,
        metadata: fields.metadata()?,
        idempotency_key: key.map(Arc::from),
    };
    fields.end()?;
    Ok(request)
}

fn wait(seconds: Option<i64>) -> Result<Duration, Invalid> {
    let seconds = seconds.unwrap_or(0);
    if (0..=WAIT_SECONDS_MAX).contains(&seconds) {
        return Ok(Duration::from_secs(seconds.unsigned_abs()));
    }
    Err(Invalid::new(
        "waitSeconds",
        format!("must be 0 to {WAIT_SECONDS_MAX}, but is {seconds}"),
    ))
}

impl From<Acquired> for AcquiredWire {
    fn from(acquired: Acquired) -> Self {
        match acquired {
            Acquired::Granted { lease, remaining_ms } => Self::Granted(GrantedWire {
                acquired: true,
                lease_id: lease.id,
                fencing_token: lease.token.number(),
                expires_at: moment(lease.expires_at),
                ttl_seconds: lease.ttl.seconds(),
                remaining_ms,
            }),
            Acquired::Refused { refusal, waiters } => Self::Refused(RefusedWire::new(refusal, waiters)),
        }
    }
}
