//! Use cases: implements the pages' `Console` port with the inventory, and with direct backend reads where fresh
//! data is required.

mod charts;
mod contention;
mod exporter_status;
mod fencing;
mod fresh_read;
mod live_waits;
mod own_leases;
mod page_cache;
mod released_lock;
mod search_limits;
mod task_panics;
mod waits;

use std::sync::Arc;
use std::time::Duration;

use app::console::{Console, ConsoleCharts, ConsoleError, ConsoleFuture};
use domain::access::{Grants, Permission, Visible};
use domain::backend::{BackendStatus, BackendView};
use domain::contention::ContentionPage;
use domain::fencing_rejections::FencingPage;
use domain::lock::Lock;
use domain::lock_detail::{EventKind, LockCharts, LockDetail, SeenEvent};
use domain::name_tree::PrefixNode;
use domain::names::{BackendName, Resource, Source};
use domain::overview::{Overview, OverviewCharts, WORKLIST_ROWS_MAX};
use domain::query::{InventoryPage, InventoryQuery};
use domain::reported::Reported;
use domain::state::LockState;
use domain::waits::page::WaitsPage;

use crate::history::{self, History};
use crate::identity::Principal;
use crate::unlock;
use backends::BackendRegistry;
use inventory::{Abandon, Inventory, LookUp, SEEN_MAX};
use runtime::clock::Clock;
use runtime::tasks;
use runtime::telemetry;

use page_cache::{PageCache, Stamp};
use search_limits::Searches;

pub use charts::ChartSources;

/// Timeout of history queries for a page.
const HISTORY_PATIENCE: Duration = Duration::from_millis(500);
/// Longest time that a stored page is answered, in milliseconds. Roll-ups change once a minute; a rejection has no revision.
const CONTENTION_STEP_MS: i64 = 1_000;
const FENCING_STEP_MS: i64 = 250;

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
    /// The caller; `None` without sign-in, in which case no operation is allowed.
    who: Option<Principal>,
}

impl ServerConsole {
    pub fn new(inventory: Arc<Inventory>, backends: Arc<BackendRegistry>, clock: Clock) -> Self {
        Self {
            inventory,
            backends,
            clock,
            searches: Searches::new(),
            visible: Visible::default(),
            who: None,
            history: None,
            charts: None,
            contention_pages: Arc::new(PageCache::new()),
            fencing_pages: Arc::new(PageCache::new()),
            waits_pages: Arc::new(PageCache::new()),
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

impl ServerConsole {
    /// Recent events of the inventory merged with history; without history if it does not answer in time.
    async fn with_history(
        &self,
        backend: &BackendName,
        source: Option<&Source>,
        names: &[Resource],
        seen: Vec<SeenEvent>,
    ) -> Vec<SeenEvent> {
        let Some(history) = &self.history else { return seen };
        let reading = async {
            let mut written = Vec::new();
            for name in names {
                written.extend(history.lock_events(backend, source, name, SEEN_MAX).await?);
            }
            Ok::<_, sqlx::Error>(written)
        };
        match tokio::time::timeout(HISTORY_PATIENCE, reading).await {
            Ok(Ok(written)) => history::together(written, seen, SEEN_MAX),
            Ok(Err(error)) => {
                tracing::warn!("history cannot be read: {error}");
                seen
            }
            Err(_) => seen,
        }
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
            // A search scans every name: on a blocking thread.
            let scans = !query.q.is_empty() || !query.owners.is_empty() || query.safety.is_some();
            let (inventory, now) = (self.inventory.clone(), self.clock.now());
            let page = if scans {
                let search = move |abandon: &Abandon| inventory.page_unless(&query, now, abandon);
                self.searches.run(search).await?
            } else {
                inventory.page(&query, now)
            };
            let mut page = page.map_err(ConsoleError::BadQuery)?;
            // Only programs read ids from the list; for users they are on the lock's page, so that lists need no
            // query.
            if self.who.as_ref().is_some_and(Principal::is_token) {
                self.add_own_lease_ids(&mut page.locks).await;
            }
            Ok(page)
        })
    }

    fn prefixes(&self, prefix: String) -> ConsoleFuture<'_, PrefixNode> {
        Box::pin(async move { Ok(self.inventory.prefixes(&prefix, &self.visible, self.clock.now())) })
    }

    fn lock(
        &self,
        backend: BackendName,
        source: Option<Source>,
        resource: String,
    ) -> ConsoleFuture<'_, LockDetail> {
        Box::pin(async move {
            // The same answer whether or not it is held: an invisible name reveals nothing.
            let scope = self.visible.on(&backend);
            let all = Resource::candidates(&resource);
            let names: Vec<Resource> = all
                .iter()
                .filter(|name| scope.covers_bytes(name.as_bytes()))
                .cloned()
                .collect();
            if names.is_empty() {
                return Err(not_held(&backend, &resource, &[]));
            }
            // Two names can have the same text form, and only one may be in scope.
            let is_shared = names.len() < all.len();
            let (lock, seen) =
                match self
                    .inventory
                    .find_lock(&backend, source.as_ref(), &resource, self.clock.now())
                {
                    LookUp::Found(lock, _) if !scope.covers_bytes(lock.id.resource.as_bytes()) => {
                        return Err(not_held(&backend, &resource, &[]));
                    }
                    LookUp::Found(lock, seen) if scope.is_everything() => (*lock, seen),
                    LookUp::Found(lock, seen) => (lock.limited(), seen),
                    LookUp::Ambiguous(_) if is_shared => return Err(not_held(&backend, &resource, &[])),
                    LookUp::Ambiguous(sources) => return Err(ConsoleError::Ambiguous { sources }),
                    LookUp::NoSuchBackend => {
                        return Err(ConsoleError::NotFound {
                            what: format!("no backend is named {backend}"),
                        });
                    }
                    LookUp::NotHeld(seen) => {
                        let seen = if is_shared { Vec::new() } else { seen };
                        let seen = self.with_history(&backend, source.as_ref(), &names, seen).await;
                        return Err(not_held(&backend, &resource, &seen));
                    }
                };
            let names = std::slice::from_ref(&lock.id.resource);
            let seen = self
                .with_history(&backend, Some(&lock.id.source), names, seen)
                .await;
            let view = self.view(&backend);
            let blind = view
                .as_ref()
                .is_some_and(|view| view.status == BackendStatus::Down);
            let fresh = if blind {
                Reported::unknown("the backend is down")
            } else {
                self.read_fresh(&lock).await
            };
            let mut detail = LockDetail {
                no_unlock: self.no_unlock(&lock, view.as_ref()),
                lock,
                backend_status: view.as_ref().map_or(BackendStatus::Starting, |view| view.status),
                backend_fault: view.and_then(|view| view.fault),
                fresh,
                seen,
                past: None,
                charts: None,
            };
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
        Box::pin(self.remembered(backend, source, resource))
    }

    fn backends(&self) -> ConsoleFuture<'_, Vec<BackendView>> {
        Box::pin(async move {
            let mut views = self.inventory.backends_visible(&self.visible, self.clock.now());
            let ours = views.iter_mut().find(|view| view.name == BackendName::builtin());
            if let Some(ours) = ours.filter(|view| !view.is_limited) {
                ours.capabilities
                    .extend(telemetry::exports().iter().map(exporter_status::capability));
            }
            Ok(task_panics::with_tasks(views, tasks::fallen()))
        })
    }

    fn lock_charts<'a>(&'a self, detail: &'a LockDetail, search: &'a str) -> ConsoleCharts<'a, LockCharts> {
        Box::pin(async move {
            let may_audit = self
                .who
                .as_ref()
                .is_some_and(|who| who.may_anywhere(Permission::AuditRead));
            let charts = self.charts.as_ref()?;
            Some(charts.lock(detail, search, (may_audit, &self.visible)).await)
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
            let stamp = self.stamp(CONTENTION_STEP_MS);
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
            let stamp = self.stamp(FENCING_STEP_MS);
            self.fencing_pages
                .get((&search, &self.visible), stamp, page)
                .await
        })
    }
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

fn not_held(backend: &BackendName, resource: &str, seen: &[domain::lock_detail::SeenEvent]) -> ConsoleError {
    let name = domain::escape::visible(resource).into_owned();
    let name = if name.len() > 200 {
        Resource::from(&name[..name.floor_char_boundary(200)]).text()
    } else {
        name
    };
    let newest = seen
        .iter()
        .find(|event| !matches!(event.kind, EventKind::Unwatched | EventKind::WatchedAgain));
    let what = match newest {
        Some(event) => {
            let at = event.at.format("%Y-%m-%d %H:%M:%S UTC");
            format!(
                "{name} is not held on {backend} now; last seen {} at {at}",
                event.kind.word()
            )
        }
        None => format!("{name} is not held on {backend} now"),
    };
    ConsoleError::NotFound { what }
}
