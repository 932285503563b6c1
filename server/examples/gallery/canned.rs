//! The canned console: the port over made-up rows that live and change by the clock.

use std::sync::{Mutex, PoisonError};

use app::console::{Answer, Console, ConsoleError, Drawn};
use chrono::{DateTime, Utc};
use domain::backend::BackendView;
use domain::detail::{LockCharts, LockDetail};
use domain::lock::Lock;
use domain::names::{BackendName, Resource, Source};
use domain::overview::{Overview, OverviewCharts, WORKLIST_ROWS_MAX};
use domain::query::{InventoryPage, InventoryQuery};
use domain::segments::PrefixNode;
use domain::state::StateCounts;
use leasehold::clock::Clock;

use crate::events::Stream;
use crate::scenes::Scene;
use crate::{backends, charts, detail, list, tree};

/// Something changes once per beat.
pub(crate) const BEAT_MS: i64 = 1_500;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) wall: DateTime<Utc>,
    /// Since the gallery opened.
    pub(crate) elapsed_ms: i64,
    pub(crate) beat: u64,
}

pub(crate) struct Canned {
    clock: Clock,
    state: Mutex<(Scene, Stream)>,
}

impl Canned {
    pub(crate) fn new(scene: Scene) -> Self {
        Self {
            clock: Clock::start(),
            state: Mutex::new((scene, Stream::On)),
        }
    }

    pub(crate) fn scene(&self) -> Scene {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn set_scene(&self, scene: Scene) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0 = scene;
    }

    pub(crate) fn streaming(&self) -> Stream {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1
    }

    pub(crate) fn set_stream(&self, stream: Stream) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1 = stream;
    }

    pub(crate) fn now(&self) -> Moment {
        let now = self.clock.now();
        let beat = u64::try_from(now.tick.0 / BEAT_MS).unwrap_or(0);
        Moment {
            wall: now.wall,
            elapsed_ms: now.tick.0,
            beat,
        }
    }

    pub(crate) fn rows(&self) -> Vec<Lock> {
        self.scene().rows(self.now())
    }

    pub(crate) fn views(&self, rows: &[Lock]) -> Vec<BackendView> {
        backends::views(self.scene(), rows, self.now())
    }

    fn page(&self, query: &InventoryQuery) -> Result<InventoryPage, ConsoleError> {
        let rows = self.rows();
        let mut page = list::page(&rows, query)?;
        page.held_total = count(rows.len());
        page.backends = self.views(&rows);
        page.complete = page
            .backends
            .iter()
            .all(|backend| backend.status == domain::backend::BackendStatus::Live);
        page.revision = self.now().beat;
        Ok(page)
    }

    fn summary(&self) -> Overview {
        let rows = self.rows();
        let mut states = StateCounts::default();
        rows.iter().for_each(|lock| states.add(lock.state, 1));
        let mut attention: Vec<Lock> = rows
            .iter()
            .filter(|lock| lock.state.needs_attention())
            .cloned()
            .collect();
        attention.sort_by_key(|lock| lock.state);
        attention.truncate(usize::try_from(WORKLIST_ROWS_MAX).unwrap_or(12));
        let waiters = rows
            .iter()
            .filter_map(|lock| lock.waiter_count.known())
            .map(|count| u64::from(*count));
        Overview {
            backends: self.views(&rows),
            attention,
            attention_total: states.needing_attention(),
            states,
            held_total: count(rows.len()),
            waiters_total: waiters.sum(),
            revision: self.now().beat,
            charts: OverviewCharts::default(),
        }
    }

    fn find(
        &self,
        backend: &BackendName,
        source: Option<&Source>,
        resource: &str,
    ) -> Result<LockDetail, ConsoleError> {
        let rows = self.rows();
        let wanted = Resource::candidates(resource);
        if resource == "tenant_204:ledger-post" && source.is_none() {
            return Err(ConsoleError::Ambiguous {
                sources: ["lease", "table:public.distributed_locks"]
                    .map(Source::fixed)
                    .to_vec(),
            });
        }
        let found = rows.iter().find(|lock| {
            lock.id.backend == *backend
                && wanted.contains(&lock.id.resource)
                && source.is_none_or(|source| *source == lock.id.source)
        });
        let lock = found.ok_or_else(|| ConsoleError::NotFound {
            what: format!("{backend} holds no lock {resource}"),
        })?;
        let view = self.views(&rows).into_iter().find(|view| view.name == *backend);
        Ok(detail::of(lock, view, self.now()))
    }
}

pub(crate) fn count(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

impl Console for Canned {
    fn overview(&self) -> Answer<'_, Overview> {
        Box::pin(async { Ok(self.summary()) })
    }

    fn inventory(&self, query: InventoryQuery) -> Answer<'_, InventoryPage> {
        Box::pin(async move { self.page(&query) })
    }

    fn prefixes(&self, prefix: String) -> Answer<'_, PrefixNode> {
        Box::pin(async move { Ok(tree::node(&self.rows(), &prefix)) })
    }

    fn lock(&self, backend: BackendName, source: Option<Source>, resource: String) -> Answer<'_, LockDetail> {
        Box::pin(async move { self.find(&backend, source.as_ref(), &resource) })
    }

    fn backends(&self) -> Answer<'_, Vec<BackendView>> {
        Box::pin(async { Ok(self.views(&self.rows())) })
    }

    fn lock_charts<'a>(&'a self, detail: &'a LockDetail, search: &'a str) -> Drawn<'a, LockCharts> {
        Box::pin(async move { charts::of(detail, search, self.now()) })
    }

    fn overview_charts<'a>(&'a self, _: &'a Overview, search: &'a str) -> Drawn<'a, OverviewCharts> {
        Box::pin(async move { charts::overview(search, self.now()) })
    }
}
