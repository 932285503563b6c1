//! Safety class of a lock: correctness or efficiency.

use serde::{Deserialize, Serialize};

use crate::reported::Why;

crate::wire_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum SafetyClass {
        /// A monotonic token, and consensus or one database.
        Correctness = "correctness",
        /// No token, or weaker: saves work, does not protect data.
        Efficiency = "efficiency",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Safety {
    pub class: SafetyClass,
    pub why: Why,
}
