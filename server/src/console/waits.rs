//! Who waits for whom, over all backends, as far as the reader may see.

use app::console::ConsoleError;
use domain::waits::page::{DeadlockView, WaitsPage};
use domain::waits::view::GraphView;

use super::ServerConsole;

/// Longest time that a stored page is served, in milliseconds: backends become stale by time
/// alone.
const WAITS_STEP_MS: i64 = 1_000;
/// Deadlocks on the overview; the page has all.
const OVERVIEW_MAX: usize = 3;

impl ServerConsole {
    /// One page per revision and scope: many open tabs request it at once.
    pub(super) async fn waits_page(&self) -> Result<WaitsPage, ConsoleError> {
        let stamp = || self.stamp(WAITS_STEP_MS);
        let computed = async {
            let (inventory, visible) = (self.inventory.clone(), self.visible.clone());
            let now = self.clock.now();
            let page = tokio::task::spawn_blocking(move || {
                let graph = inventory.wait_graph(now);
                WaitsPage {
                    at: now.wall.timestamp_millis(),
                    ..GraphView::new(&graph, &visible, now.tick).page()
                }
            });
            page.await.map_err(|_| ConsoleError::Unavailable {
                what: "The graph of waits could not be computed. The reason is in the log.".to_owned(),
            })
        };
        self.waits_pages.get(("", &self.visible), stamp, computed).await
    }

    /// The worst deadlocks, and the number of all.
    pub(super) async fn worst_deadlocks(&self) -> Result<(Vec<DeadlockView>, usize), ConsoleError> {
        let mut page = self.waits_page().await?;
        page.deadlocks.truncate(OVERVIEW_MAX);
        Ok((page.deadlocks, page.deadlocks_total))
    }
}
