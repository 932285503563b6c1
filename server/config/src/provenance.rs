//! Origin of a value, for errors and `check-config`.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// Later ones take precedence over earlier ones.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Origin {
    Default,
    File {
        path: Arc<str>,
        /// Line, from 1; 0 for the file as a whole.
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
    /// Two exclusive keys (`url` and `url_file`) conflict only within one layer; the higher layer wins.
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
