//! `POST /v1/locks/acquire`

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName};
use domain::lease::limits::WAIT_SECONDS_MAX;
use domain::lease::{Metadata, Ttl, ValidationError, names};

use super::context::Context;
use super::dto::{AcquireDto, AcquiredDto, GrantedDto, RefusedDto, moment};
use crate::http::json_body::{self, BodyError, FieldErrors};
use crate::http::problem::Problem;
use lease::{AcquireRequest, Acquired, LeaseService};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Acquires the lock of a resource, or answers with its holder.
///
/// A refusal is 200 with `acquired: false`. The same `Idempotency-Key` and body within 10 minutes give the same lease.
#[utoipa::path(
    post, path = "/v1/locks/acquire", tag = "leases",
    params(("Idempotency-Key" = Option<String>, Header, description = "1 to 128 visible ASCII characters")),
    request_body = AcquireDto,
    responses(
        (status = 200, body = AcquiredDto),
        (status = 400, body = Problem, content_type = "application/problem+json", description = "A field is invalid, or the name is `reserved`"),
        (status = 403, body = Problem, content_type = "application/problem+json", description = "`out_of_scope`"),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "The key was used for another body"),
        (status = 410, body = Problem, content_type = "application/problem+json", description = "The key's lease is lost"),
        (status = 413, body = Problem, content_type = "application/problem+json"),
        (status = 415, body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json", description = "Retry with the same key")
    )
)]
pub(in crate::http) async fn acquire(
    State(service): State<Arc<LeaseService>>,
    context: Context,
    body: Body,
) -> Result<Json<AcquiredDto>, Problem> {
    let request = parse(&service, &context, body)
        .await
        .map_err(|error| context.problem(error))?;
    let waits = !request.wait.is_zero();
    // Pinned in place: moving the future costs a copy.
    let mut acquiring = std::pin::pin!(service.acquire(&context.caller, request));
    let acquired = match &context.guard {
        // A token revoked while waiting leaves the queue.
        Some(guard) if waits => tokio::select! {
            acquired = &mut acquiring => acquired,
            () = guard.access_lost() => {
                let problem = Problem::unauthenticated("This token was revoked, has expired or has other permissions now");
                return Err(problem.with_request_id(&context.headers));
            }
        },
        _ => acquiring.await,
    };
    acquired
        .map(|it| Json(AcquiredDto::from(it)))
        .map_err(|error| context.problem(error))
}

async fn parse(service: &LeaseService, context: &Context, body: Body) -> Result<AcquireRequest, BodyError> {
    let key = idempotency_key(&context.headers)?;
    let body: AcquireDto = json_body::read(&context.headers, body).await?;
    let request = parse_request(service, body)?;
    Ok(AcquireRequest {
        idempotency_key: key.map(Arc::from),
        ..request
    })
}

pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, ValidationError> {
    let mut keys = headers.get_all(&IDEMPOTENCY_KEY).iter();
    let key = keys
        .next()
        .map(|key| names::idempotency_key(key.as_bytes()))
        .transpose()?;
    if keys.next().is_some() {
        return Err(ValidationError::new("Idempotency-Key", "must be given once"));
    }
    Ok(key)
}

/// The request of a body, without an idempotency key.
pub(super) fn parse_request(service: &LeaseService, body: AcquireDto) -> Result<AcquireRequest, FieldErrors> {
    let mut errors = FieldErrors::default();
    let resource = errors.check(names::resource(&body.resource));
    let owner = errors.check(names::owner(&body.owner_id));
    let ttl = errors.check(Ttl::parse(body.ttl_seconds, service.ttl_seconds_max()));
    let wait = errors.check(wait(body.wait_seconds));
    let metadata = errors.check(metadata(body.metadata));
    let (Some(resource), Some(owner), Some(ttl), Some(wait), Some(metadata)) =
        (resource, owner, ttl, wait, metadata)
    else {
        return Err(errors);
    };
    Ok(AcquireRequest {
        resource,
        owner,
        ttl,
        wait,
        metadata,
        idempotency_key: None,
    })
}

fn metadata(map: Option<BTreeMap<String, String>>) -> Result<Metadata, ValidationError> {
    let Some(map) = map else {
        return Ok(Metadata::default());
    };
    let json_bytes = serde_json::to_string(&map).map_or(usize::MAX, |text| text.len());
    Metadata::new(map, json_bytes)
}

fn wait(seconds: Option<i64>) -> Result<Duration, ValidationError> {
    let seconds = seconds.unwrap_or(0);
    if (0..=WAIT_SECONDS_MAX).contains(&seconds) {
        return Ok(Duration::from_secs(seconds.unsigned_abs()));
    }
    Err(ValidationError::new(
        "waitSeconds",
        format!("must be 0 to {WAIT_SECONDS_MAX}, but is {seconds}"),
    ))
}

impl From<Acquired> for AcquiredDto {
    fn from(acquired: Acquired) -> Self {
        match acquired {
            Acquired::Granted { lease, remaining_ms } => Self::Granted(GrantedDto {
                acquired: true,
                lease_id: lease.id,
                fencing_token: lease.token.number(),
                expires_at: moment(lease.expires_at),
                ttl_seconds: lease.ttl.seconds(),
                remaining_ms,
            }),
            Acquired::Refused { refusal, waiters } => Self::Refused(RefusedDto::new(refusal, waiters)),
        }
    }
}
