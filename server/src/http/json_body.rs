//! Strict JSON bodies, read into the same serde types that the OpenAPI document describes.
//!
//! A body is one object without unknown or repeated members. Every error names its field: the first member of a wrong
//! type, or, from [`FieldErrors`], every value that its validator rejects. Values are checked by the handler's `parse`.

mod field_errors;
mod object;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use domain::lease::ValidationError;
use domain::lease::limits::BODY_BYTES_MAX;
use futures::StreamExt as _;
use serde::de::DeserializeOwned;

pub(super) use self::field_errors::FieldErrors;
use self::object::Object;
pub(super) use self::object::{objects, optional_strings};

/// Why a body cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BodyError {
    TooLarge {
        bytes_max: usize,
    },
    NotJson,
    /// At least one.
    Invalid(Vec<ValidationError>),
}

impl From<ValidationError> for BodyError {
    fn from(invalid: ValidationError) -> Self {
        Self::Invalid(vec![invalid])
    }
}

/// How much more than the limit is read and dropped: a client that is still sending would not read the error.
const DROPPED_BYTES_MAX: usize = 1024 * 1024;

/// Reads a body of at most [`BODY_BYTES_MAX`].
pub(super) async fn read<T: DeserializeOwned>(headers: &HeaderMap, body: Body) -> Result<T, BodyError> {
    read_up_to(BODY_BYTES_MAX, headers, body).await
}

/// Reads a body of at most `bytes_max`.
pub(super) async fn read_up_to<T: DeserializeOwned>(
    bytes_max: usize,
    headers: &HeaderMap,
    body: Body,
) -> Result<T, BodyError> {
    let bytes = read_bytes(bytes_max, body).await?;
    if bytes.is_empty() {
        return Err(ValidationError::new("body", "must be a JSON object, but is empty").into());
    }
    parse(headers, &bytes)
}

/// `None` for an empty body, with any content type.
pub(super) async fn read_optional<T: DeserializeOwned>(
    headers: &HeaderMap,
    body: Body,
) -> Result<Option<T>, BodyError> {
    let bytes = read_bytes(BODY_BYTES_MAX, body).await?;
    if bytes.is_empty() {
        return Ok(None);
    }
    parse(headers, &bytes).map(Some)
}

/// All bytes of a body of at most `bytes_max`.
pub(super) async fn read_bytes(bytes_max: usize, body: Body) -> Result<Vec<u8>, BodyError> {
    let mut parts = body.into_data_stream();
    let (mut bytes, mut sent) = (Vec::new(), 0_usize);
    while let Some(part) = parts.next().await {
        let part = part.map_err(|_| ValidationError::new("body", "could not be read to its end"))?;
        sent = sent.saturating_add(part.len());
        if sent <= bytes_max {
            bytes.extend_from_slice(&part);
        } else if sent > bytes_max.saturating_add(DROPPED_BYTES_MAX) {
            break;
        }
    }
    if sent > bytes_max {
        return Err(BodyError::TooLarge { bytes_max });
    }
    Ok(bytes)
}

fn parse<T: DeserializeOwned>(headers: &HeaderMap, bytes: &[u8]) -> Result<T, BodyError> {
    if !is_json(headers) {
        return Err(BodyError::NotJson);
    }
    match serde_json::from_slice::<Object<T>>(bytes) {
        Ok(Object(value)) => Ok(value),
        Err(error) if error.is_data() => Err(at_path::<T>(bytes).into()),
        Err(error) => {
            let place = format!(
                "is not valid JSON at line {}, column {}",
                error.line(),
                error.column()
            );
            Err(ValidationError::new("body", place).into())
        }
    }
}

/// Reads the body again to learn the path of its error: tracking the path costs time that valid bodies need not spend.
#[cold]
fn at_path<T: DeserializeOwned>(bytes: &[u8]) -> ValidationError {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    match serde_path_to_error::deserialize::<_, Object<T>>(&mut json) {
        Ok(_) => ValidationError::new("body", "must be a JSON object"),
        Err(error) => field_errors::from_serde(&error),
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
    kind.and_then(|kind| kind.split(';').next())
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

#[cfg(test)]
mod tests;
