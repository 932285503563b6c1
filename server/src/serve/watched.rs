//! One system that is observed: a configured backend, or the lease service of our own, with its pace.

use std::sync::Arc;
use std::time::Duration;

use domain::generation::Generation;
use domain::names::{BackendName, Resource, Source};
use secrecy::{ExposeSecret, SecretString};
use tokio_util::sync::CancellationToken;

use crate::backends::Backend;
use crate::backends::announcing::Announcing;
use crate::backends::builtin::Builtin;
use crate::backends::connect::connect;
use crate::backends::measured::Measured;
use crate::clock::Clock;
use crate::config::BackendConfig;
use crate::inventory::{BackendInfo, ForceRelease, Inventory};
use crate::lease::LeaseService;
use crate::observer::{self, Pace};

/// The lease service tells every change at once; the poll only finds what a hint lost.
const BUILTIN_PACE: Pace = Pace {
    poll: Duration::from_secs(1),
    timeout: Duration::from_secs(5),
    budget: Duration::from_secs(20),
};

pub(super) struct Watched {
    name: BackendName,
    adapter: Arc<dyn Backend>,
    pace: Pace,
}

impl Watched {
    pub(super) fn configured(config: &BackendConfig, clock: &Clock) -> Self {
        let pace = Pace {
            poll: config.poll,
            timeout: config.timeout,
            budget: config.budget,
        };
        Self {
            name: config.name.clone(),
            adapter: Arc::new(Measured::new(&config.name, connect(config, clock))),
            pace,
        }
    }

    pub(super) fn builtin(leases: &Arc<LeaseService>, store: &SecretString, clock: &Clock) -> Self {
        let address = address(store.expose_secret());
        let (name, adapter) = (
            BackendName::builtin(),
            Builtin::new(leases.clone(), address, clock.clone()),
        );
        Self {
            adapter: Arc::new(Measured::new(&name, Arc::new(adapter))),
            name,
            pace: BUILTIN_PACE,
        }
    }

    pub(super) fn info(&self) -> BackendInfo {
        BackendInfo {
            name: self.name.clone(),
            kind: self.adapter.kind(),
            address: self.adapter.address(),
            poll_ms: i64::try_from(self.pace.poll.as_millis()).unwrap_or(i64::MAX),
            capabilities: self.adapter.capabilities(),
        }
    }
}

impl Watched {
    /// Starts the tasks that keep the inventory in step with it, until `stop`. Answers the adapter for whoever wants to ask
    /// it directly; none where the inventory has no place for it.
    pub(super) fn observe(
        self,
        inventory: &Arc<Inventory>,
        clock: &Clock,
        stop: &CancellationToken,
    ) -> Option<Arc<dyn Backend>> {
        let Self { name, adapter, pace } = self;
        let describe = {
            let adapter = adapter.clone();
            move |source: &Source| (adapter.safety(source), adapter.grain_ms(source))
        };
        let feed = inventory.feed(&name, clock.now(), describe)?;
        let hints = observer::start(adapter.clone(), feed, pace, clock.clone(), stop);
        let (of, clock) = (inventory.clone(), clock.clone());
        let unlocked = move |source: &Source, resource: &Resource, generation: &Generation| {
            let release = ForceRelease {
                source: source.clone(),
                resource: resource.clone(),
                generation: generation.clone(),
                at: clock.now().wall,
            };
            of.note_unlocked(&name, release);
        };
        Some(Arc::new(Announcing::new(adapter, hints, unlocked)))
    }
}

/// Where the store is, without user or password.
fn address(store: &str) -> String {
    match url::Url::parse(store) {
        Ok(url) if url.has_host() => {
            let host = url.host_str().unwrap_or_default();
            let port = url.port().map_or(String::new(), |port| format!(":{port}"));
            format!("{}://{host}{port}{}", url.scheme(), url.path())
        }
        _ => store.split('?').next().unwrap_or_default().to_owned(),
    }
}
