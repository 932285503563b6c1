//! Searches that scan every name: on blocking threads, limited in number, stopped when the client disconnects. A page
//! that is being rendered keeps its search.

use std::sync::Arc;
use std::time::Duration;

use app::console::ConsoleError;
use domain::query::{InventoryQuery, SortKey};
use tokio::sync::Semaphore;

use inventory::Cancellation;

/// How long a search waits for a permit.
const PERMIT_WAIT_MAX: Duration = Duration::from_secs(2);
/// `Retry-After` of a refused search, in seconds.
const RETRY_AFTER_S: u32 = 1;

/// Cheap to clone; all share the same permits.
#[derive(Clone)]
pub struct Searches {
    permits: Arc<Semaphore>,
    permit_wait_max: Duration,
}

/// Whether a page of locks may read every name: by a filter without an index, or to skip the rows before its cursor in an order
/// of which the index has the beginning only.
pub(super) fn reads_every_name(query: &InventoryQuery) -> bool {
    let is_by_key = matches!(
        query.sort.key,
        SortKey::Held | SortKey::Remaining | SortKey::Waiters
    );
    !query.q.is_empty()
        || !query.owners.is_empty()
        || query.safety.is_some()
        || (is_by_key && query.cursor.is_some())
}

impl Default for Searches {
    /// Half of the cores; the others serve leases and pages.
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self::with(cores.div_ceil(2), PERMIT_WAIT_MAX)
    }
}

impl Searches {
    fn with(searches_max: usize, permit_wait_max: Duration) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(searches_max)),
            permit_wait_max,
        }
    }

    /// Runs `search`, which is stopped when this future is dropped. Its permit is returned when it has ended.
    ///
    /// # Errors
    /// Too many searches are running.
    pub async fn run<T: Send + 'static>(
        &self,
        search: impl FnOnce(&Cancellation) -> T + Send + 'static,
    ) -> Result<T, ConsoleError> {
        let busy = ConsoleError::Busy {
            retry_after_s: RETRY_AFTER_S,
        };
        let permit = tokio::time::timeout(self.permit_wait_max, self.permits.clone().acquire_owned());
        let Ok(Ok(permit)) = permit.await else {
            return Err(busy);
        };
        let abandon = Cancellation::default();
        let _abandoned_on_drop = abandon.on_drop();
        let running = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            search(&abandon)
        });
        running.await.map_err(|_| busy)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn further_pages_by_a_key_read_every_name() {
        let reads = |pairs: &[(&str, &str)]| {
            let query = InventoryQuery::from_pairs(pairs.iter().copied()).unwrap();
            reads_every_name(&query)
        };
        for key in ["held", "-held", "remaining", "waiters"] {
            assert!(!reads(&[("sort", key)]), "{key}");
            assert!(reads(&[("sort", key), ("cursor", "x")]), "{key}");
        }
        for filter in [("q", "a"), ("owner", "a"), ("safety", "efficiency")] {
            assert!(reads(&[filter]), "{filter:?}");
        }
        for key in ["resource", "state"] {
            assert!(
                !reads(&[("sort", key), ("cursor", "x"), ("prefix", "a")]),
                "{key}"
            );
        }
    }

    #[tokio::test]
    async fn a_search_beyond_the_limit_is_refused() {
        // One search runs without end, so the next is refused after its wait; then the first ends.
        let searches = Searches::with(1, Duration::ZERO);
        let (end, ended) = mpsc::channel::<()>();
        let first = searches.run(move |_| ended.recv());
        tokio::pin!(first);
        assert!(futures::poll!(&mut first).is_pending());
        let refused = searches.run(|_| ()).await;
        assert_eq!(refused, Err(ConsoleError::Busy { retry_after_s: 1 }));
        end.send(()).unwrap();
        first.await.unwrap().unwrap();
        assert_eq!(searches.run(|_| 7).await, Ok(7));
    }

    #[tokio::test]
    async fn a_search_ends_when_its_client_disconnects() {
        // The future is dropped, as for a disconnecting client.
        let searches = Searches::with(1, Duration::from_secs(60));
        {
            let search = searches.run(|abandon| {
                while !abandon.is_cancelled() {
                    std::thread::yield_now();
                }
            });
            tokio::pin!(search);
            assert!(futures::poll!(&mut search).is_pending());
        }
        assert_eq!(searches.run(|_| 7).await, Ok(7));
    }
}
