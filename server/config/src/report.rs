//! Effective values and their origins, for `leasehold check-config`.

use serde::Serialize;

use super::provenance::Origin;

/// One key with its effective value; secrets are redacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    pub key: String,
    /// In the syntax of the file.
    pub value: String,
    pub origin: Origin,
}
