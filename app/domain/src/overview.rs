//! Data of the overview page: the worklist and the health of each backend.

mod headline;

pub use headline::{Finding, backends_title, finding};

use serde::{Deserialize, Serialize};

use crate::alerts::{AlertSeverity, Subject};
use crate::backend::BackendView;
use crate::charts::held_locks::HeldLocksChart;
use crate::charts::shown_range::ShownRange;
use crate::fencing_rejections::Rejection;
use crate::lock::Lock;
use crate::state::StateCounts;
use crate::unlock::UnlockState;
use crate::waits::page::DeadlockView;

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
    /// The worst deadlocks, and the number of all.
    pub deadlocks: Vec<DeadlockView>,
    pub deadlocks_total: usize,
    pub revision: u64,
    /// Read for the page only.
    pub charts: Option<OverviewCharts>,
}

/// Data of the charts and recent incidents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OverviewCharts {
    pub range: ShownRange,
    /// `None`: alerts could not be read.
    pub alerts: Option<FiringAlerts>,
    /// `None`: history could not be read in time.
    pub held: Option<HeldLocksChart>,
    /// `None`: rejections could not be read.
    pub rejections: Option<RecentRejections>,
    /// `None`: unlocks could not be read.
    pub unlocks: Option<RecentUnlocks>,
    /// The reader may read the audit log.
    pub may_audit: bool,
}

/// The worst firing alerts, and the number of all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FiringAlerts {
    pub worst: Vec<FiringAlert>,
    pub total: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FiringAlert {
    pub rule: String,
    pub severity: AlertSeverity,
    pub subject: Subject,
    pub why: String,
    /// Milliseconds since 1970.
    pub since: i64,
}

/// The newest fencing rejections of the range, and the number of all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RecentRejections {
    pub newest: Vec<Rejection>,
    pub total: u64,
}

/// The newest executed forced unlocks of the range, and the number of all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RecentUnlocks {
    pub newest: Vec<RecentUnlock>,
    pub total: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecentUnlock {
    pub id: String,
    /// Milliseconds since 1970.
    pub at: i64,
    /// Text form.
    pub resource: String,
    pub state: UnlockState,
    pub by: String,
    pub reason: String,
}

/// Rows of each list of recent incidents.
pub const RECENT_ROWS_MAX: usize = 5;
/// Rows of the list of firing alerts.
pub const FIRING_ROWS_MAX: usize = 6;

pub const WORKLIST_ROWS_MAX: u32 = 12;
