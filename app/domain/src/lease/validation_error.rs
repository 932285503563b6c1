//! Validation error with the field that it concerns.

use thiserror::Error;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field} {message}")]
pub struct ValidationError {
    pub field: String,
    /// Continues the field's name: "must have 1 to 512 bytes, but has 600".
    pub message: String,
}

impl ValidationError {
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
        }
    }
}
