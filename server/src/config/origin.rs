//! Where a value came from: what an error points at and what `check-config` shows.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// Later ones win over earlier ones.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Origin {
    Default,
    File {
        path: Arc<str>,
        /// Counted from 1; 0 stands for the file as a whole.
        line: usize,
    },
    Environment {
        name: String,
    },
    Flag {
        name: String,
    },
}

impl Origin {
    /// Two keys that exclude each other (`url` and `url_file`) only do so within one layer; a higher one wins.
    pub(super) fn layer(&self) -> u8 {
        match self {
            Self::Default => 0,
            Self::File { .. } => 1,
            Self::Environment { .. } => 2,
            Self::Flag { .. } => 3,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line: 0 } => f.write_str(path),
            Self::File { path, line } => write!(f, "{path}:{line}"),
            Self::Environment { name } => f.write_str(name),
            Self::Flag { name } => f.write_str(name),
        }
    }
}
