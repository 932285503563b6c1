//! Metadata of a lease: an object of strings, at most 4096 bytes as JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::limits::METADATA_BYTES_MAX;
use super::validation_error::ValidationError;

/// Cheap to clone; equality ignores the order of keys.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Metadata(Arc<BTreeMap<String, String>>);

impl Metadata {
    /// `json_bytes` is the length of the object as JSON, which the parser knows.
    ///
    /// # Errors
    /// Names `metadata`, or the member, and the reason.
    pub fn new(map: BTreeMap<String, String>, json_bytes: usize) -> Result<Self, ValidationError> {
        if json_bytes > METADATA_BYTES_MAX {
            let message =
                format!("must have at most {METADATA_BYTES_MAX} bytes as JSON, but has {json_bytes}");
            return Err(ValidationError::new("metadata", message));
        }
        let nul = |text: &str| text.contains('\0');
        if let Some((key, _)) = map.iter().find(|(key, value)| nul(key) || nul(value)) {
            let field = format!("metadata.{}", key.replace('\0', ""));
            return Err(ValidationError::new(field, "must not hold the character U+0000"));
        }
        Ok(Self(Arc::new(map)))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }
}
