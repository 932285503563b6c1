//! Data of the pages' charts, from history, fencing rejections, alerts and unlocks.
//!
//! **Invariant:** charts never delay a page for long nor make it fail; data that is not available is absent.

mod lock;
mod overview;

use std::sync::Arc;
use std::time::Duration;

use crate::alerts::Alerts;
use crate::history::History;
use crate::unlock::Unlocks;
use lease::LeaseService;
use runtime::clock::Clock;

/// Timeout of a page's charts.
const CHART_TIMEOUT: Duration = Duration::from_millis(800);

/// Data sources of charts. Cheap to clone.
#[derive(Clone)]
pub struct ChartSources {
    pub history: Arc<History>,
    pub leases: Arc<LeaseService>,
    pub unlocks: Arc<Unlocks>,
    pub alerts: Arc<Alerts>,
    pub clock: Clock,
}

impl ChartSources {
    pub fn new(
        history: &Arc<History>,
        leases: &Arc<LeaseService>,
        (unlocks, alerts): (&Arc<Unlocks>, &Arc<Alerts>),
        clock: &Clock,
    ) -> Self {
        Self {
            history: history.clone(),
            leases: leases.clone(),
            unlocks: unlocks.clone(),
            alerts: alerts.clone(),
            clock: clock.clone(),
        }
    }
}

impl ChartSources {
    fn now_ms(&self) -> i64 {
        self.clock.now().wall.timestamp_millis()
    }

    /// End of the simulated past of a demo. `None` without a demo, or if it was not read in time.
    pub(super) async fn simulated_until(&self) -> Option<i64> {
        let until = tokio::time::timeout(CHART_TIMEOUT, self.history.simulated_until()).await;
        until.ok()?.ok()?
    }

    /// Begin of the recorded history, to fit a range to. `None`: empty, or not read in time; the
    /// range is then not fitted.
    pub(super) async fn since(&self) -> Option<i64> {
        let since = tokio::time::timeout(CHART_TIMEOUT, self.history.since()).await;
        since.ok()?.ok()?
    }
}
