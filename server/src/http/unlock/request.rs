//! Bodies of forced unlocks.

use domain::generation::Generation;
use domain::lease::ValidationError;
use domain::limits::RESOURCE_BYTES_MAX;
use domain::names::{BackendName, Source};
use serde::Deserialize;
use utoipa::ToSchema;

use super::bulk::BulkItemDto;
use crate::http::json_body::{BodyError, FieldErrors};
use crate::unlock::{Confirmation, UnlockRequest};

/// Longest generation, in bytes; adapters produce much shorter ones.
const GENERATION_BYTES_MAX: usize = 2 * RESOURCE_BYTES_MAX;

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(title = "UnlockRequest", example = json!({"backend": "$BACKEND", "resource": "$RESOURCE", "generation": "$GENERATION", "reason": "The worker's host is gone, see incident 4711"}))]
pub(in crate::http) struct UnlockRequestDto {
    backend: String,
    /// Needed where two sources hold the same name.
    source: Option<String>,
    resource: String,
    /// Generation of the holding as shown: another holding is never released.
    generation: String,
    /// At least 10 characters, five of them letters or digits; at most 500. Recorded word for word.
    reason: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(title = "UnlockConfirmation", example = json!({"resource": "$RESOURCE"}))]
pub(in crate::http) struct ConfirmationDto {
    /// `confirm.type` of the intent, typed by a user.
    resource: String,
    /// Second reason for acting without the second approver. Flagged until another user reviews it.
    break_glass_reason: Option<String>,
}

impl UnlockRequestDto {
    /// # Errors
    /// Every field that is not valid.
    pub(super) fn parse(self) -> Result<UnlockRequest, BodyError> {
        let item = BulkItemDto {
            backend: self.backend,
            source: self.source,
            resource: self.resource,
            generation: self.generation,
        };
        item.parse("", self.reason)
    }
}

impl BulkItemDto {
    /// `path` is what precedes the names of the fields in errors: `items[3].`.
    ///
    /// # Errors
    /// Every field that is not valid.
    pub(super) fn parse(self, path: &str, reason: String) -> Result<UnlockRequest, BodyError> {
        let mut errors = FieldErrors::default();
        let invalid = |field: &str| ValidationError::new(format!("{path}{field}"), "is not a valid name");
        let backend = BackendName::parse(&self.backend).map_err(|_| invalid("backend"));
        let backend = errors.check(backend);
        let source = self.source.map(|text| Source::parse(&text)).transpose();
        let source = errors.check(source.map_err(|_| invalid("source")));
        let resource = errors.check(bounded(path, "resource", self.resource, RESOURCE_BYTES_MAX));
        let generation = bounded(path, "generation", self.generation, GENERATION_BYTES_MAX);
        let generation = errors.check(generation);
        let (Some(backend), Some(source), Some(resource), Some(generation)) =
            (backend, source, resource, generation)
        else {
            return Err(errors.into());
        };
        Ok(UnlockRequest {
            backend,
            source,
            resource,
            generation: Generation::new(generation),
            reason,
        })
    }
}

impl From<ConfirmationDto> for Confirmation {
    fn from(body: ConfirmationDto) -> Self {
        Self {
            resource: body.resource,
            break_glass: body.break_glass_reason,
        }
    }
}

fn bounded(path: &str, field: &str, text: String, bytes_max: usize) -> Result<String, ValidationError> {
    if (1..=bytes_max).contains(&text.len()) {
        return Ok(text);
    }
    Err(ValidationError::new(
        format!("{path}{field}"),
        format!("must have 1 to {bytes_max} bytes, but has {}", text.len()),
    ))
}
