//! How far a lock may be trusted.

use serde::{Deserialize, Serialize};

use crate::known::Why;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SafetyClass {
    /// A monotonic token, and consensus or one database.
    Correctness,
    /// No token, or weaker: saves work, does not protect data.
    Efficiency,
}

impl SafetyClass {
    pub const fn wire(self) -> &'static str {
        match self {
            Self::Correctness => "correctness",
            Self::Efficiency => "efficiency",
        }
    }

    pub fn parse(wire: &str) -> Option<Self> {
        [Self::Correctness, Self::Efficiency]
            .into_iter()
            .find(|class| class.wire() == wire)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Safety {
    pub class: SafetyClass,
    pub why: Why,
}
