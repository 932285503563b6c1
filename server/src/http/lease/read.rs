//! `GET /v1/locks`, `GET /v1/locks/{leaseId}`, `GET /v1/resources/{resource}`

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::lease::limits::{LIST_ROWS_DEFAULT, LIST_ROWS_MAX, RESOURCE_BYTES_MAX};
use domain::lease::{LeaseId, ValidationError, names};
use domain::names::Resource;

use super::context::Context;
use super::dto::{LeaseDto, LeasePageDto, ResourceDto};
use crate::http::problem::Problem;
use lease::{LeaseError, LeaseService};

/// A malformed id is an unknown lease.
pub(super) fn lease_id(path: Result<Path<String>, PathRejection>) -> Result<LeaseId, LeaseError> {
    let text = path.map(|Path(text)| text).unwrap_or_default();
    LeaseId::parse(&text).ok_or(LeaseError::NotFound)
}

/// The lease, live or ended.
#[utoipa::path(
    get, path = "/v1/locks/{leaseId}", tag = "leases",
    params(("leaseId" = String, Path)),
    responses(
        (status = 200, body = LeaseDto),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "Unknown id, a lease of another principal, or one past its retention"),
        (status = 503, body = Problem, content_type = "application/problem+json")
    )
)]
pub(in crate::http) async fn lease(
    State(service): State<Arc<LeaseService>>,
    context: Context,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<LeaseDto>, Problem> {
    let id = lease_id(path).map_err(|error| context.problem(error))?;
    let lease = service
        .lease(&context.caller, id)
        .await
        .map_err(|error| context.problem(error))?;
    Ok(Json(LeaseDto::new(&context.caller, &lease)))
}

/// Leases held now, in order of their resource's bytes.
#[utoipa::path(
    get, path = "/v1/locks", tag = "leases",
    params(
        ("prefix" = Option<String>, Query, description = "Literal leading part of the resource"),
        ("limit" = Option<u32>, Query, description = "1 to 1000, default 100"),
        ("cursor" = Option<String>, Query, description = "`nextCursor` of the previous page")
    ),
    responses(
        (status = 200, body = LeasePageDto),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json")
    )
)]
pub(in crate::http) async fn list(
    State(service): State<Arc<LeaseService>>,
    context: Context,
    RawQuery(query): RawQuery,
) -> Result<Json<LeasePageDto>, Problem> {
    let query = Query::parse(query.as_deref().unwrap_or_default());
    let query = query.map_err(|error| context.problem(LeaseError::Invalid(error)))?;
    let page = service
        .leases(&context.caller, &query.prefix, query.after.as_ref(), query.limit)
        .await;
    let page = page.map_err(|error| context.problem(error))?;
    Ok(Json(LeasePageDto {
        locks: page
            .leases
            .iter()
            .map(|seen| LeaseDto::new(&context.caller, seen))
            .collect(),
        next_cursor: page.next.map(|last| URL_SAFE_NO_PAD.encode(last.as_bytes())),
        complete: page.is_complete,
    }))
}

struct Query {
    prefix: String,
    limit: u32,
    after: Option<Resource>,
}

impl Query {
    fn parse(text: &str) -> Result<Self, ValidationError> {
        let mut query = Self {
            prefix: String::new(),
            limit: LIST_ROWS_DEFAULT,
            after: None,
        };
        for (name, value) in url::form_urlencoded::parse(text.as_bytes()) {
            match &*name {
                "prefix" => query.prefix = prefix(&value)?,
                "limit" => query.limit = limit(&value)?,
                "cursor" => query.after = Some(cursor(&value)?),
                _ => {
                    return Err(ValidationError::new(
                        name,
                        "is not a parameter; allowed are prefix, limit and cursor",
                    ));
                }
            }
        }
        Ok(query)
    }
}

fn prefix(value: &str) -> Result<String, ValidationError> {
    if value.len() > RESOURCE_BYTES_MAX {
        return Err(ValidationError::new(
            "prefix",
            format!("must have at most {RESOURCE_BYTES_MAX} bytes"),
        ));
    }
    if value.contains('\0') {
        return Err(ValidationError::new(
            "prefix",
            "must not hold the character U+0000",
        ));
    }
    Ok(value.to_owned())
}

fn limit(value: &str) -> Result<u32, ValidationError> {
    let number = value
        .parse()
        .ok()
        .filter(|number| (1..=LIST_ROWS_MAX).contains(number));
    number.ok_or_else(|| ValidationError::new("limit", format!("must be 1 to {LIST_ROWS_MAX}")))
}

fn cursor(value: &str) -> Result<Resource, ValidationError> {
    let name = URL_SAFE_NO_PAD
        .decode(value)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let name = name.and_then(|name| names::resource(&name).ok());
    name.ok_or_else(|| {
        ValidationError::new(
            "cursor",
            "is not a cursor of this API; use `nextCursor` of the previous page",
        )
    })
}

/// Current holder, last fencing token and queue of a resource.
#[utoipa::path(
    get, path = "/v1/resources/{resource}", tag = "leases",
    params(("resource" = String, Path, description = "Percent-encoded")),
    responses(
        (status = 200, body = ResourceDto),
        (status = 400, body = Problem, content_type = "application/problem+json"),
        (status = 403, body = Problem, content_type = "application/problem+json", description = "`out_of_scope`"),
        (status = 503, body = Problem, content_type = "application/problem+json")
    )
)]
pub(in crate::http) async fn resource(
    State(service): State<Arc<LeaseService>>,
    context: Context,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<ResourceDto>, Problem> {
    let name = match path {
        Ok(Path(text)) => names::resource(&text),
        Err(_) => Err(ValidationError::new("resource", "must be percent-encoded UTF-8")),
    };
    let name = name.map_err(|error| context.problem(LeaseError::Invalid(error)))?;
    let now = service
        .resource(&context.caller, &name)
        .await
        .map_err(|error| context.problem(error))?;
    Ok(Json(ResourceDto::new(name.text(), now)))
}
