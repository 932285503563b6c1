//! Use cases: implements the pages' `Console` port by asking the inventory, and a backend where it must be fresh.

mod charts;
mod fallen;
mod own_leases;
mod past;
mod pushing;
mod searches;

use std::sync::Arc;
use std::time::Duration;

use app::console::{Answer, Console, ConsoleError, Drawn};
use domain::access::{Grants, Right, Visible};
use domain::backend::{BackendStatus, BackendView};
use domain::detail::{EventKind, Fresh, LockCharts, LockDetail, SeenEvent};
use domain::known::Known;
use domain::lock::Lock;
use domain::names::{BackendName, Resource, Source};
use domain::observation::Inspection;
use domain::overview::{Overview, OverviewCharts, WORKLIST_ROWS_MAX};
use domain::query::{InventoryPage, InventoryQuery};
use domain::segments::PrefixNode;
use domain::state::LockState;

use crate::backends::{BackendError, Roster};
use crate::clock::Clock;
use crate::history::{self, History};
use crate::identity::Who;
use crate::inventory::{Abandon, Inventory, LookUp, SEEN_MAX};
use crate::{tasks, telemetry, unlock};

use searches::Searches;

pub use charts::Sources;

/// How long a page waits for what was written down before.
const HISTORY_PATIENCE: Duration = Duration::from_millis(500);
/// How long a page waits for a fresh reading before it shows the last observation alone.
const FRESH_PATIENCE: Duration = Duration::from_millis(1_500);

/// Cheap to clone: one for each request, with what its caller may see.
#[derive(Clone)]
pub struct ServerConsole {
    inventory: Arc<Inventory>,
    backends: Arc<Roster>,
    clock: Clock,
    searches: Searches,
    visible: Visible,
    history: Option<Arc<History>>,
    /// Where charts get their numbers; without them there are none.
    charts: Option<Arc<Sources>>,
    /// Who looks; none where nobody has to sign in, and then nobody may do anything.
    who: Option<Who>,
}

impl ServerConsole {
    pub fn new(inventory: Arc<Inventory>, backends: Arc<Roster>, clock: Clock) -> Self {
        Self {
            inventory,
            backends,
            clock,
            searches: Searches::new(),
            visible: Visible::default(),
            who: None,
            history: None,
            charts: None,
        }
    }

    /// With what was seen before this process began, and charts of it.
    #[must_use]
    pub fn remembering(self, charts: Sources) -> Self {
        Self {
            history: Some(charts.history.clone()),
            charts: Some(Arc::new(charts)),
            ..self
        }
    }

    /// The same console as far as this caller may see; who is not known sees nothing.
    #[must_use]
    pub fn seen_by(&self, who: Option<&Who>) -> Self {
        let nothing = Grants::default();
        Self {
            visible: Visible::to(who.map_or(&nothing, |who| &who.grants)),
            who: who.cloned(),
            ..self.clone()
        }
    }

    fn no_unlock(&self, lock: &Lock, view: Option<&BackendView>) -> Option<String> {
        let Some((who, backend)) = self.who.as_ref().zip(self.backends.get(&lock.id.backend)) else {
            return Some("nobody has signed in".to_owned());
        };
        unlock::hindrance(who, lock, &*backend, view)
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

    async fn read_fresh(&self, lock: &Lock) -> Known<Fresh> {
        let Some(backend) = self.backends.get(&lock.id.backend) else {
            return Known::unknown("this backend is not configured any more");
        };
        let asked = backend.inspect(&lock.id.source, &lock.id.resource);
        let answer = tokio::time::timeout(FRESH_PATIENCE, asked).await;
        let read_at = self.clock.now().wall;
        match answer.unwrap_or(Err(BackendError::NoAnswer {
            after_ms: patience_ms(),
        })) {
            Ok(Inspection { lock: None, .. }) => Known::unknown(
                "it was released between our last look and now; the list catches up at its next look",
            ),
            Ok(found) => Known::Known(Fresh {
                waiters: found.waiters,
                owners: found.owners,
                blockers: found.blockers,
                session: found.session,
                raw: found.raw,
                shares_fate_with: self.told_of_neighbours(&lock.id.backend, found.shares_fate_with),
                read_at,
            }),
            Err(_) if !self.visible.on(&lock.id.backend).is_everything() => {
                Known::unknown("the backend did not answer in time or gave an error")
            }
            Err(error) => Known::Unknown(error.to_string().into()),
        }
    }
}

impl ServerConsole {
    /// What the inventory remembers, with what was written down. Without an answer in time the first alone.
    async fn with_history(
        &self,
        backend: &BackendName,
        source: Option<&Source>,
        names: &[Resource],
        seen: Vec<SeenEvent>,
    ) -> Vec<SeenEvent> {
        let Some(history) = &self.history else { return seen };
        let asked = async {
            let mut written = Vec::new();
            for name in names {
                written.extend(history.of(backend, source, name, SEEN_MAX).await?);
            }
            Ok::<_, sqlx::Error>(written)
        };
        match tokio::time::timeout(HISTORY_PATIENCE, asked).await {
            Ok(Ok(written)) => history::together(written, seen, SEEN_MAX),
            Ok(Err(error)) => {
                tracing::warn!("history cannot be read: {error}");
                seen
            }
            Err(_) => seen,
        }
    }

    /// Neighbours on the same lease or session may have names that the caller may not see: then only how many.
    fn told_of_neighbours(&self, backend: &BackendName, neighbours: Vec<String>) -> Vec<String> {
        if neighbours.is_empty() || self.visible.on(backend).is_everything() {
            return neighbours;
        }
        vec![format!(
            "{} more, under names that you may not see",
            neighbours.len()
        )]
    }
}

fn patience_ms() -> u64 {
    u64::try_from(FRESH_PATIENCE.as_millis()).unwrap_or(u64::MAX)
}

impl Console for ServerConsole {
    fn overview(&self) -> Answer<'_, Overview> {
        Box::pin(async move {
            let list = self.worklist()?;
            Ok(Overview {
                attention: list.locks,
                attention_total: list.total,
                states: list.states,
                held_total: list.held_total,
                waiters_total: list.backends.iter().filter_map(|view| view.waiters.known()).sum(),
                revision: list.revision,
                backends: list.backends,
                charts: OverviewCharts::default(),
            })
        })
    }

    fn inventory(&self, mut query: InventoryQuery) -> Answer<'_, InventoryPage> {
        Box::pin(async move {
            query.visible = self.visible.clone();
            // A search reads every name: off the threads that answer others.
            let scans = !query.q.is_empty() || !query.owners.is_empty() || query.safety.is_some();
            let (inventory, now) = (self.inventory.clone(), self.clock.now());
            let page = if scans {
                let search = move |abandon: &Abandon| inventory.page_unless(&query, now, abandon);
                self.searches.run(search).await?
            } else {
                inventory.page(&query, now)
            };
            let mut page = page.map_err(ConsoleError::BadQuery)?;
            // Programs read ids from the list; people see theirs on a lock's own page, and their list costs the store nothing.
            if self.who.as_ref().is_some_and(Who::is_token) {
                self.add_own_lease_ids(&mut page.locks).await;
            }
            Ok(page)
        })
    }

    fn prefixes(&self, prefix: String) -> Answer<'_, PrefixNode> {
        Box::pin(async move { Ok(self.inventory.prefixes(&prefix, &self.visible, self.clock.now())) })
    }

    fn lock(&self, backend: BackendName, source: Option<Source>, resource: String) -> Answer<'_, LockDetail> {
        Box::pin(async move {
            // The same answer whether or not it is held: a name that may not be seen tells nothing.
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
            // Two names may share a text form, and only one of them may be in scope.
            let is_shared = names.len() < all.len();
            let (lock, seen) =
                match self
                    .inventory
                    .look_up(&backend, source.as_ref(), &resource, self.clock.now())
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
                Known::unknown("the backend is down")
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
                is_past: false,
                charts: LockCharts::default(),
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
    ) -> Answer<'_, Option<LockDetail>> {
        Box::pin(self.remembered(backend, source, resource))
    }

    fn backends(&self) -> Answer<'_, Vec<BackendView>> {
        Box::pin(async move {
            let mut views = self.inventory.backends_visible(&self.visible, self.clock.now());
            let ours = views.iter_mut().find(|view| view.name == BackendName::builtin());
            if let Some(ours) = ours.filter(|view| !view.is_limited) {
                ours.capabilities
                    .extend(telemetry::exports().iter().map(pushing::told));
            }
            Ok(fallen::with_tasks(views, tasks::fallen()))
        })
    }

    fn lock_charts<'a>(&'a self, detail: &'a LockDetail, search: &'a str) -> Drawn<'a, LockCharts> {
        Box::pin(async move {
            let may_audit = self
                .who
                .as_ref()
                .is_some_and(|who| who.may_anywhere(Right::AuditRead));
            match &self.charts {
                Some(charts) => charts.lock(detail, search, (may_audit, &self.visible)).await,
                None => LockCharts::default(),
            }
        })
    }

    fn overview_charts<'a>(&'a self, overview: &'a Overview, search: &'a str) -> Drawn<'a, OverviewCharts> {
        Box::pin(async move {
            match &self.charts {
                Some(charts) => {
                    let viewer = (self.who.as_ref(), &self.visible);
                    charts.overview(overview, search, viewer).await
                }
                None => OverviewCharts::default(),
            }
        })
    }
}

impl ServerConsole {
    /// Without the error text of a backend of which the caller may see a part.
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

fn not_held(backend: &BackendName, resource: &str, seen: &[domain::detail::SeenEvent]) -> ConsoleError {
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
