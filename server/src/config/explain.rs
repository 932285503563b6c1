//! What was read and from where: the answer of `leasehold check-config`.

use serde::Serialize;

use super::origin::Origin;

/// One key with the value that counts, fit to be shown: secrets are redacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    pub key: String,
    /// As it would be written in the file.
    pub value: String,
    pub origin: Origin,
}
