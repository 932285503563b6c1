//! `POST /v1/locks/batch`: many operations in one call, for a process that holds many leases.
//!
//! Each operation runs as its single call would, at the same time as the others, and succeeds or fails by itself. The
//! store commits them in as few transactions as it does for the single calls.

mod dto;

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use domain::lease::limits::{BATCH_BODY_BYTES_MAX, BATCH_OPERATIONS_MAX};
use domain::lease::{LeaseId, Ttl, ValidationError};
use domain::names::Resource;

pub(in crate::http) use self::dto::{BatchDto, BatchResultDto, BatchResultsDto};
use self::dto::{BatchLeaseDto, BatchRenewDto, OperationDto};
use super::acquire;
use super::context::Context;
use super::dto::{AcquiredDto, ReleasedDto, RenewedDto};
use crate::http::json_body::{self, BodyError, FieldErrors};
use crate::http::problem::Problem;
use lease::{AcquireRequest, LeaseCaller, LeaseService, PendingGrant};

/// Acquires, renews and releases leases in one call.
///
/// Operations run at the same time, in no order; so a resource or a lease may be named once. The results have the order
/// of the operations, and each is that of the single call or its problem. With an `Idempotency-Key`, the same call within
/// 10 minutes gives the same leases: the key applies to each acquire by its position. No operation waits in a queue.
#[utoipa::path(
    post, path = "/v1/locks/batch", tag = "leases",
    params(("Idempotency-Key" = Option<String>, Header, description = "1 to 128 visible ASCII characters")),
    request_body = BatchDto,
    responses(
        (status = 200, body = BatchResultsDto, description = "Also if operations failed"),
        (status = 400, body = Problem, content_type = "application/problem+json", description = "An operation is invalid: none was run"),
        (status = 413, body = Problem, content_type = "application/problem+json"),
        (status = 415, body = Problem, content_type = "application/problem+json")
    )
)]
pub(in crate::http) async fn batch(
    State(service): State<Arc<LeaseService>>,
    context: Context,
    body: Body,
) -> Result<Json<BatchResultsDto>, Problem> {
    let operations = parse(&service, &context, body)
        .await
        .map_err(|error| context.problem(error))?;
    let running = operations
        .into_iter()
        .map(|operation| operation.run(&service, &context.caller));
    let results = futures::future::join_all(running).await;
    // Nothing is awaited from here on: the client gets the leases with this answer.
    let results = results.into_iter().map(|result| match result {
        Ok((result, grant)) => {
            if let Some(grant) = grant {
                grant.receive();
            }
            result
        }
        Err(error) => BatchResultDto::Problem(Box::new(context.problem(error))),
    });
    Ok(Json(BatchResultsDto {
        results: results.collect(),
    }))
}

/// A valid operation.
enum Operation {
    Acquire(AcquireRequest),
    Renew { lease: LeaseId, ttl: Option<Ttl> },
    Release { lease: LeaseId },
}

impl Operation {
    /// A grant is released if its result is dropped, because the client disconnected while other operations were running.
    async fn run(
        self,
        service: &LeaseService,
        caller: &LeaseCaller,
    ) -> Result<(BatchResultDto, Option<PendingGrant>), lease::LeaseError> {
        Ok(match self {
            Self::Acquire(request) => {
                let (acquired, grant) = service.acquire_pending(caller, request).await?;
                (BatchResultDto::Acquire(AcquiredDto::from(acquired)), grant)
            }
            Self::Renew { lease, ttl } => {
                let renewed = service.renew(caller, lease, ttl).await?;
                (BatchResultDto::Renew(RenewedDto::from(renewed)), None)
            }
            Self::Release { lease } => {
                let ended = service.release(caller, lease).await?;
                (BatchResultDto::Release(ReleasedDto::from(ended)), None)
            }
        })
    }
}

async fn parse(service: &LeaseService, context: &Context, body: Body) -> Result<Vec<Operation>, BodyError> {
    let key = acquire::idempotency_key(&context.headers)?;
    let body: BatchDto = json_body::read_up_to(BATCH_BODY_BYTES_MAX, &context.headers, body).await?;
    let most = BATCH_OPERATIONS_MAX;
    if body.operations.is_empty() || body.operations.len() > most {
        let count = body.operations.len();
        let message = format!("must have 1 to {most} elements, but has {count}");
        return Err(ValidationError::new("operations", message).into());
    }
    let mut errors = FieldErrors::default();
    let mut seen_names = SeenNames::default();
    let mut operations = Vec::with_capacity(body.operations.len());
    for (position, dto) in body.operations.into_iter().enumerate() {
        let operation = parse_operation(service, dto).and_then(|mut operation| {
            seen_names.add(position, &operation)?;
            if let Operation::Acquire(request) = &mut operation {
                // A line feed is in no key of a client.
                request.idempotency_key = key.as_ref().map(|key| format!("{key}\n{position}").into());
            }
            Ok(operation)
        });
        match operation {
            Ok(operation) => operations.push(operation),
            Err(found) => errors.extend_at(&format!("operations[{position}]"), found),
        }
    }
    errors.into_result(operations)
}

fn parse_operation(service: &LeaseService, dto: OperationDto) -> Result<Operation, FieldErrors> {
    match dto {
        OperationDto::Acquire(dto) => acquire::parse_request(service, dto.into())
            .map(Operation::Acquire)
            .map_err(|errors| errors.within("acquire")),
        OperationDto::Renew(BatchRenewDto {
            lease_id,
            ttl_seconds,
        }) => {
            let mut errors = FieldErrors::default();
            let lease = errors.check(parse_lease(&lease_id));
            let ttl = ttl_seconds.map(|seconds| Ttl::parse(seconds, service.ttl_seconds_max()));
            let ttl = errors.check(ttl.transpose());
            match (lease, ttl) {
                (Some(lease), Some(ttl)) => Ok(Operation::Renew { lease, ttl }),
                _ => Err(errors.within("renew")),
            }
        }
        OperationDto::Release(BatchLeaseDto { lease_id }) => {
            let mut errors = FieldErrors::default();
            let lease = errors.check(parse_lease(&lease_id));
            lease
                .map(|lease| Operation::Release { lease })
                .ok_or_else(|| errors.within("release"))
        }
    }
}

fn parse_lease(text: &str) -> Result<LeaseId, ValidationError> {
    LeaseId::parse(text).ok_or_else(|| ValidationError::new("leaseId", "must be the id of a lease"))
}

/// Positions by resource and by lease.
#[derive(Default)]
struct SeenNames {
    resources: HashMap<Resource, usize>,
    leases: HashMap<LeaseId, usize>,
}

impl SeenNames {
    fn add(&mut self, position: usize, operation: &Operation) -> Result<(), FieldErrors> {
        let (field, earlier) = match operation {
            Operation::Acquire(request) => {
                let earlier = self.resources.insert(request.resource.clone(), position);
                ("acquire.resource", earlier)
            }
            Operation::Renew { lease, .. } => ("renew.leaseId", self.leases.insert(*lease, position)),
            Operation::Release { lease } => ("release.leaseId", self.leases.insert(*lease, position)),
        };
        let Some(earlier) = earlier else { return Ok(()) };
        let message = format!("is also named by operations[{earlier}]; operations of one call have no order");
        Err(ValidationError::new(field, message).into())
    }
}
