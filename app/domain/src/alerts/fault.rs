//! What is wrong with something typed: the field, why, and how to mend it.

use thiserror::Error;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field}: {why}; {mend}")]
pub struct Fault {
    /// As in the API and in TOML: `with.longer_than`, `prefix`.
    pub field: String,
    /// A clause without a full stop.
    pub why: String,
    /// The same: what to write instead.
    pub mend: String,
}

impl Fault {
    pub fn new(field: impl Into<String>, why: impl Into<String>, mend: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            why: why.into(),
            mend: mend.into(),
        }
    }
}
