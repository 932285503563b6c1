//! What the first page shows: the worklist and the health of each backend.

mod finding;

pub use finding::{Finding, backends_title, finding};

use serde::{Deserialize, Serialize};

use crate::backend::BackendView;
use crate::lock::Lock;
use crate::state::StateCounts;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    pub backends: Vec<BackendView>,
    /// The worst locks that need attention, one row each, at most [`WORKLIST_ROWS_MAX`].
    pub attention: Vec<Lock>,
    pub attention_total: u64,
    pub states: StateCounts,
    pub held_total: u64,
    pub waiters_total: u64,
    pub revision: u64,
    /// Made by the server for the page alone.
    #[serde(default)]
    pub charts: OverviewCharts,
}

/// Parts of the page as HTML, which the browser shows as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OverviewCharts {
    /// What fires, beside the worklist.
    pub alerts: String,
    /// Held and waiting over time, refused writes, forced unlocks.
    pub lately: String,
}

pub const WORKLIST_ROWS_MAX: u32 = 12;
