//! Validation error of one input field: field, reason, remedy.

use thiserror::Error;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field}: {why}; {remedy}")]
pub struct FieldError {
    /// As in the API and in TOML: `with.longer_than`, `prefix`.
    pub field: String,
    /// A clause without a full stop.
    pub why: String,
    /// A clause without a full stop: what to write instead.
    pub remedy: String,
}

impl FieldError {
    pub fn new(field: impl Into<String>, why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            why: why.into(),
            remedy: remedy.into(),
        }
    }
}
