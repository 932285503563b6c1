//! Use cases: implements the pages' `Console` port with the inventory, and with direct backend reads where fresh
//! data is required.

mod charts;
mod contention;
mod exporter_status;
mod fencing;
mod fresh_read;
mod live_waits;
mod lock_page;
mod own_leases;
mod page_cache;
mod released_lock;
mod search_limits;
mod task_panics;
mod waits;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use app::console::{Console, ConsoleCharts, ConsoleError, ConsoleFuture};
use domain::access::{Grants, Permission, Visible};
use domain::backend::BackendView;
use domain::contention::ContentionPage;
use domain::fencing_rejections::FencingPage;
use domain::limits::PAGE_ROWS_DEFAULT;
use domain::lock::Lock;
use domain::lock_detail::{LockCharts, LockDetail};
use domain::name_tree::PrefixNode;
use domain::names::{BackendName, Source};
use domain::overview::{Overview, OverviewCharts, WORKLIST_ROWS_MAX};
use domain::query::{InventoryPage, InventoryQuery};
use domain::state::LockState;
use domain::waits::page::WaitsPage;

use crate::history::History;
use crate::identity::Principal;
use crate::unlock;
use backends::BackendRegistry;
use inventory::{Cancellation, Inventory};
use runtime::clock::Clock;
use runtime::tasks;
use runtime::telemetry;

use page_cache::{PageCache, Stamp};
use search_limits::reads_every_name;

pub use charts::ChartSources;
pub use search_limits::Searches;

/// Timeout of history queries for a page.
const HISTORY_TIMEOUT: Duration = Duration::from_millis(500);
/// Longest time that a stored page is served, in milliseconds. Roll-ups change once a minute; a rejection has no revision.
const CONTENTION_STEP_MS: i64 = 1_000;
const FENCING_STEP_MS: i64 = 250;
const LIST_STEP_MS: i64 = 250;
/// Names of a stored list or tree, in bytes: a name may have 64 KiB, and a cache has many pages.
const STORED_NAMES_MAX: usize = 256 * 1024;

/// Cheap to clone: one per request, with the caller's visibility.
#[derive(Clone)]
pub struct ServerConsole {
    inventory: Arc<Inventory>,
    backends: Arc<BackendRegistry>,
    clock: Clock,
    searches: Searches,
    visible: Visible,
    history: Option<Arc<History>>,
    /// Sources of charts; `None`: no charts.
    charts: Option<Arc<ChartSources>>,
    contention_pages: Arc<PageCache<ContentionPage>>,
    fencing_pages: Arc<PageCache<FencingPage>>,
    waits_pages: Arc<PageCache<WaitsPage>>,
    lock_pages: Arc<PageCache<Result<LockDetail, ConsoleError>>>,
    lock_charts: Arc<PageCache<LockCharts>>,
    list_pages: Arc<PageCache<Result<InventoryPage, ConsoleError>>>,
    name_trees: Arc<PageCache<PrefixNode>>,
    /// The caller; `None` without sign-in, in which case no operation is allowed.
    who: Option<Principal>,
}

impl ServerConsole {
    pub fn new(inventory: Arc<Inventory>, backends: Arc<BackendRegistry>, clock: Clock) -> Self {
        Self {
            inventory,
            backends,
            clock,
            searches: Searches::default(),
            visible: Visible::default(),
            who: None,
            history: None,
            charts: None,
            contention_pages: Arc::new(PageCache::new()),
            fencing_pages: Arc::new(PageCache::new()),
            waits_pages: Arc::new(PageCache::new()),
            lock_pages: Arc::new(PageCache::new()),
            lock_charts: Arc::new(PageCache::new()),
            list_pages: Arc::new(PageCache::of_small_pages(is_small_list)),
            name_trees: Arc::new(PageCache::of_small_pages(is_small_tree)),
        }
    }

    /// Adds history and charts.
    #[must_use]
    pub fn remembering(self, charts: ChartSources) -> Self {
        Self {
            history: Some(charts.history.clone()),
            charts: Some(Arc::new(charts)),
            ..self
        }
    }

    /// The console as visible to this caller; an unknown caller sees nothing.
    #[must_use]
    pub fn seen_by(&self, who: Option<&Principal>) -> Self {
        let nothing = Grants::default();
        Self {
            visible: Visible::to(who.map_or(&nothing, |who| &who.grants)),
            who: who.cloned(),
            ..self.clone()
        }
    }

    fn no_unlock(&self, lock: &Lock, view: Option<&BackendView>) -> Option<String> {
        let Some((who, backend)) = self.who.as_ref().zip(self.backends.get(&lock.id.backend)) else {
            return Some("the request has no principal".to_owned());
        };
        unlock::find_blocked_reason(who, lock, &*backend, view)
    }

    /// One page per revision and scope: many open tabs request it at once.
    async fn list_page(&self, query: InventoryQuery) -> Result<InventoryPage, ConsoleError> {
        // Longer ones are requested by programs; too large to be stored.
        if query.limit > PAGE_ROWS_DEFAULT {
            return self.compute_list_page(query).await;
        }
        let key = format!("{:?}", query.to_pairs());
        let stamp = || self.stamp(LIST_STEP_MS);
        // Refusals are stored too: otherwise the waiting requests would try one after the other.
        let page = async { Ok::<_, Infallible>(self.compute_list_page(query).await) };
        let Ok(page) = self.list_pages.get((&key, &self.visible), stamp, page).await;
        page
    }

    async fn compute_list_page(&self, query: InventoryQuery) -> Result<InventoryPage, ConsoleError> {
        let (inventory, now) = (self.inventory.clone(), self.clock.now());
        let page = if reads_every_name(&query) {
            let search = move |abandon: &Cancellation| inventory.page_unless(&query, now, abandon);
            self.searches.run(search).await?
        } else {
            inventory.page(&query, now)
        };
        page.map_err(ConsoleError::BadQuery)
    }

    fn worklist(&self) -> Result<InventoryPage, ConsoleError> {
        let query = InventoryQuery {
            states: LockState::ALL
                .into_iter()
                .filter(|state| state.needs_attention())
                .collect(),
            limit: WORKLIST_ROWS_MAX,
            visible: self.visible.clone(),
            ..InventoryQuery::default()
        };
        self.inventory
            .page(&query, self.clock.now())
            .map_err(ConsoleError::BadQuery)
    }
}

impl Console for ServerConsole {
    fn overview(&self) -> ConsoleFuture<'_, Overview> {
        Box::pin(async move {
            let list = self.worklist()?;
            let (deadlocks, deadlocks_total) = self.worst_deadlocks().await?;
            Ok(Overview {
                deadlocks,
                deadlocks_total,
                attention: list.locks,
                attention_total: list.total,
                states: list.states,
                held_total: list.held_total,
                waiters_total: list.backends.iter().filter_map(|view| view.waiters.known()).sum(),
                revision: list.revision,
                backends: list.backends,
                charts: None,
            })
        })
    }

    fn inventory(&self, mut query: InventoryQuery) -> ConsoleFuture<'_, InventoryPage> {
        Box::pin(async move {
            query.visible = self.visible.clone();
            let mut page = self.list_page(query).await?;
            // Only programs read ids from the list; for users they are on the lock's page, so that lists need no
            // query.
            if self.who.as_ref().is_some_and(Principal::is_token) {
                self.add_own_lease_ids(&mut page.locks).await;
            }
            Ok(page)
        })
    }

    fn prefixes(&self, prefix: String) -> ConsoleFuture<'_, PrefixNode> {
        Box::pin(async move {
            let tree = async { Ok(self.inventory.prefixes(&prefix, &self.visible, self.clock.now())) };
            let stamp = || self.stamp(LIST_STEP_MS);
            self.name_trees.get((&prefix, &self.visible), stamp, tree).await
        })
    }

    fn lock(
        &self,
        backend: BackendName,
        source: Option<Source>,
        resource: String,
    ) -> ConsoleFuture<'_, LockDetail> {
        Box::pin(async move {
            let mut detail = self.lock_page(&backend, source.as_ref(), &resource).await?;
            detail.no_unlock = self.no_unlock(&detail.lock, self.view(&backend).as_ref());
            self.add_own_lease_id(&mut detail).await;
            Ok(detail)
        })
    }

    fn past(
        &self,
        backend: BackendName,
        source: Option<Source>,
        resource: String,
    ) -> ConsoleFuture<'_, Option<LockDetail>> {
        Box::pin(self.released_lock(backend, source, resource))
    }

    fn backends(&self) -> ConsoleFuture<'_, Vec<BackendView>> {
        Box::pin(async move {
            let mut views = self.inventory.backends_visible(&self.visible, self.clock.now());
            let builtin = views.iter_mut().find(|view| view.name == BackendName::builtin());
            if let Some(builtin) = builtin.filter(|view| !view.is_limited) {
                builtin
                    .capabilities
                    .extend(telemetry::exports().iter().map(exporter_status::capability));
            }
            Ok(task_panics::with_tasks(views, tasks::panicked_tasks()))
        })
    }

    fn lock_charts<'a>(&'a self, detail: &'a LockDetail, search: &'a str) -> ConsoleCharts<'a, LockCharts> {
        Box::pin(async move {
            let may_audit = self
                .who
                .as_ref()
                .is_some_and(|who| who.may_anywhere(Permission::AuditRead));
            let charts = self.charts.as_ref()?;
            Some(self.lock_page_charts(charts, detail, search, may_audit).await)
        })
    }

    fn overview_charts<'a>(
        &'a self,
        overview: &'a Overview,
        search: &'a str,
    ) -> ConsoleCharts<'a, OverviewCharts> {
        Box::pin(async move {
            let charts = self.charts.as_ref()?;
            let viewer = (self.who.as_ref(), &self.visible);
            Some(charts.overview(overview, search, viewer).await)
        })
    }

    fn contention(&self, search: String) -> ConsoleFuture<'_, ContentionPage> {
        Box::pin(async move {
            let page = self.contention_page(&search);
            let stamp = || self.stamp(CONTENTION_STEP_MS);
            self.contention_pages
                .get((&search, &self.visible), stamp, page)
                .await
        })
    }

    fn waits(&self) -> ConsoleFuture<'_, WaitsPage> {
        Box::pin(self.waits_page())
    }

    fn fencing(&self, search: String) -> ConsoleFuture<'_, FencingPage> {
        Box::pin(async move {
            let page = self.fencing_page(&search);
            let stamp = || self.stamp(FENCING_STEP_MS);
            self.fencing_pages
                .get((&search, &self.visible), stamp, page)
                .await
        })
    }
}

fn is_small_list(page: &Result<InventoryPage, ConsoleError>) -> bool {
    let locks = page.iter().flat_map(|page| &page.locks);
    locks.map(|lock| lock.id.resource.as_bytes().len()).sum::<usize>() <= STORED_NAMES_MAX
}

fn is_small_tree(tree: &PrefixNode) -> bool {
    let children = tree.children.iter();
    children.map(|child| child.prefix.len()).sum::<usize>() <= STORED_NAMES_MAX
}

fn store_unavailable(error: impl std::fmt::Display) -> ConsoleError {
    tracing::warn!("data of a page cannot be read: {error}");
    ConsoleError::Unavailable {
        what: "The store does not answer. New events stay in memory until it does.".to_owned(),
    }
}

impl ServerConsole {
    /// Stamp of page data that is stored for at most `step_ms`.
    fn stamp(&self, step_ms: i64) -> Stamp {
        (self.inventory.revision(), self.clock.now().tick.0 / step_ms)
    }

    /// Without the error text of a backend that the caller may see only in part.
    fn view(&self, backend: &BackendName) -> Option<BackendView> {
        let views = self.inventory.backends(self.clock.now());
        let view = views.into_iter().find(|view| view.name == *backend)?;
        Some(if self.visible.on(backend).is_everything() {
            view
        } else {
            view.limited(0, 0, 0)
        })
    }
}

#[cfg(test)]
mod tests {
    use domain::name_tree::PrefixChild;
    use domain::state::StateCounts;

    use super::*;

    #[tokio::test]
    async fn a_tree_of_large_names_is_not_stored() {
        // A stored one answers the next request, whatever that would compute.
        let console = ServerConsole::new(Inventory::new(Vec::new()), Arc::default(), Clock::start());
        let tree = |length: usize| PrefixNode {
            prefix: String::new(),
            total: 1,
            states: StateCounts::default(),
            children: vec![PrefixChild {
                segment: String::new(),
                prefix: "n".repeat(length),
                locks: 1,
                waiters: 0,
                worst: LockState::Healthy,
                states: StateCounts::default(),
                is_leaf: true,
            }],
            more_locks: 0,
        };
        let get = async |length: usize| {
            let computed = async { Ok::<_, Infallible>(tree(length)) };
            let trees = console
                .name_trees
                .get(("", &console.visible), || (1, 0), computed);
            let Ok(tree) = trees.await;
            tree.children[0].prefix.len()
        };
        for length in [STORED_NAMES_MAX + 1, STORED_NAMES_MAX] {
            assert_eq!(get(length).await, length);
        }
        assert_eq!(get(1).await, STORED_NAMES_MAX);
    }
}
