//! Generation: identifies one acquisition of a lock on a backend. A forced unlock is bound to
//! it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Opaque except to the adapter that made it: `rev:884213`, `lease:…`, `value:…`, `pid:123@…`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Generation(Box<str>);

impl Generation {
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
