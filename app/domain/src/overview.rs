//! Data of the overview page: the worklist and the health of each backend.

mod headline;

pub use headline::{Finding, backends_title, finding};

use serde::{Deserialize, Serialize};

use crate::backend::BackendView;
use crate::lock::Lock;
use crate::state::StateCounts;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    pub backends: Vec<BackendView>,
    /// The worst locks that need attention, at most [`WORKLIST_ROWS_MAX`].
    pub attention: Vec<Lock>,
    pub attention_total: u64,
    pub states: StateCounts,
    pub held_total: u64,
    pub waiters_total: u64,
    pub revision: u64,
    /// Rendered by the server for the page only.
    #[serde(default)]
    pub charts: OverviewCharts,
}

/// Parts of the page as HTML, inserted by the browser as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OverviewCharts {
    /// Firing alerts.
    pub alerts: String,
    /// Held and waiting over time, rejected writes, forced unlocks.
    pub incidents: String,
}

pub const WORKLIST_ROWS_MAX: u32 = 12;
