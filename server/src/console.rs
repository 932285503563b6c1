//! Use cases: implements the pages' `Console` port by asking the inventory, and a backend where it must be fresh.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use app::console::{Answer, Console, ConsoleError};
use domain::access::{Grants, Visible};
use domain::backend::{BackendStatus, BackendView};
use domain::detail::{Fresh, LockDetail};
use domain::known::Known;
use domain::lock::Lock;
use domain::names::{BackendName, Resource, Source};
use domain::observation::Inspection;
use domain::overview::{Overview, WORKLIST_ROWS_MAX};
use domain::query::{InventoryPage, InventoryQuery};
use domain::segments::PrefixNode;
use domain::state::LockState;

use crate::backends::{Backend, BackendError};
use crate::clock::Clock;
use crate::inventory::{Inventory, LookUp};

/// How long a page waits for a fresh reading before it shows the last observation alone.
const FRESH_PATIENCE: Duration = Duration::from_millis(1_500);

/// Cheap to clone: one for each request, with what its caller may see.
#[derive(Clone)]
pub struct ServerConsole {
    inventory: Arc<Inventory>,
    backends: Arc<HashMap<BackendName, Arc<dyn Backend>>>,
    clock: Clock,
    visible: Visible,
}

impl ServerConsole {
    pub fn new(
        inventory: Arc<Inventory>,
        backends: HashMap<BackendName, Arc<dyn Backend>>,
        clock: Clock,
    ) -> Self {
        Self {
            inventory,
            backends: Arc::new(backends),
            clock,
            visible: Visible::default(),
        }
    }

    /// The same console as far as these grants reach.
    #[must_use]
    pub fn visible_to(&self, grants: &Grants) -> Self {
        Self {
            visible: Visible::to(grants),
            ..self.clone()
        }
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
            Err(error) => Known::Unknown(error.to_string().into()),
        }
    }
}

impl ServerConsole {
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
            })
        })
    }

    fn inventory(&self, mut query: InventoryQuery) -> Answer<'_, InventoryPage> {
        Box::pin(async move {
            query.visible = self.visible.clone();
            // A search reads every name: off the threads that answer others.
            let scans = !query.q.is_empty()
                || !query.owners.is_empty()
                || query.safety.is_some()
                || !query.visible.is_everything();
            let (inventory, now) = (self.inventory.clone(), self.clock.now());
            let page = if scans {
                let search = tokio::task::spawn_blocking(move || inventory.page(&query, now));
                search.await.map_err(|_| ConsoleError::NotFound {
                    what: "the search was cut off".to_owned(),
                })?
            } else {
                inventory.page(&query, now)
            };
            page.map_err(ConsoleError::BadQuery)
        })
    }

    fn prefixes(&self, prefix: String) -> Answer<'_, PrefixNode> {
        Box::pin(async move { Ok(self.inventory.prefixes(&prefix, &self.visible, self.clock.now())) })
    }

    fn lock(&self, backend: BackendName, source: Option<Source>, resource: String) -> Answer<'_, LockDetail> {
        Box::pin(async move {
            // The same answer whether or not it is held: a name that may not be seen tells nothing.
            let scope = self.visible.on(&backend);
            let is_visible = Resource::candidates(&resource)
                .iter()
                .any(|name| scope.covers_bytes(name.as_bytes()));
            if !is_visible {
                return Err(not_held(&backend, &resource, &[]));
            }
            let (lock, seen) =
                match self
                    .inventory
                    .look_up(&backend, source.as_ref(), &resource, self.clock.now())
                {
                    LookUp::Found(lock, seen) => (*lock, seen),
                    LookUp::Ambiguous(sources) => return Err(ConsoleError::Ambiguous { sources }),
                    LookUp::NoSuchBackend => {
                        return Err(ConsoleError::NotFound {
                            what: format!("no backend is named {backend}"),
                        });
                    }
                    LookUp::NotHeld(seen) => return Err(not_held(&backend, &resource, &seen)),
                };
            let view = self.view(&backend);
            let blind = view
                .as_ref()
                .is_some_and(|view| view.status == BackendStatus::Down);
            let fresh = if blind {
                Known::unknown("the backend is down")
            } else {
                self.read_fresh(&lock).await
            };
            Ok(LockDetail {
                lock,
                backend_status: view.as_ref().map_or(BackendStatus::Starting, |view| view.status),
                backend_fault: view.and_then(|view| view.fault),
                fresh,
                seen,
            })
        })
    }

    fn backends(&self) -> Answer<'_, Vec<BackendView>> {
        Box::pin(async move { Ok(self.inventory.backends_visible(&self.visible, self.clock.now())) })
    }
}

impl ServerConsole {
    fn view(&self, backend: &BackendName) -> Option<BackendView> {
        self.inventory
            .backends(self.clock.now())
            .into_iter()
            .find(|view| view.name == *backend)
    }
}

fn not_held(backend: &BackendName, resource: &str, seen: &[domain::detail::SeenEvent]) -> ConsoleError {
    let name = domain::escape::visible(resource).into_owned();
    let name = if name.len() > 200 {
        Resource::from(&name[..name.floor_char_boundary(200)]).text()
    } else {
        name
    };
    let what = match seen.first() {
        Some(event) => {
            let at = event.at.format("%H:%M:%S UTC");
            format!(
                "{name} is not held on {backend} now; last seen {} at {at}",
                event.kind.word()
            )
        }
        None => format!("{name} is not held on {backend} now"),
    };
    ConsoleError::NotFound { what }
}
