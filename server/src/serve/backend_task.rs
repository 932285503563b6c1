//! One observed backend with its poll settings: a configured one or the built-in lease service.

use std::sync::Arc;
use std::time::Duration;

use domain::duration::millis;
use domain::generation::Generation;
use domain::names::{BackendName, Resource, Source};
use secrecy::{ExposeSecret, SecretString};
use tokio_util::sync::CancellationToken;

use crate::observer::{self, Pace};
use backends::Backend;
use backends::builtin::Builtin;
use backends::factory::connect;
use backends::instrumented::Instrumented;
use backends::refresh_after_release::RefreshOnRelease;
use config::BackendConfig;
use inventory::{BackendInfo, ForceRelease, Inventory};
use lease::{LeaseConfig, LeaseService};
use runtime::clock::Clock;

/// The lease service reports every change; polling only recovers lost notifications.
const BUILTIN_PACE: Pace = Pace {
    poll_interval: Duration::from_secs(1),
    timeout: Duration::from_secs(5),
    scan_timeout: Duration::from_secs(20),
};

pub(super) struct BackendTask {
    name: BackendName,
    adapter: Arc<dyn Backend>,
    pace: Pace,
}

impl BackendTask {
    pub(super) fn configured(config: &BackendConfig, clock: &Clock) -> Self {
        let pace = Pace {
            poll_interval: config.poll_interval,
            timeout: config.timeout,
            scan_timeout: config.scan_timeout,
        };
        Self {
            name: config.name.clone(),
            adapter: Arc::new(Instrumented::new(&config.name, connect(config, clock))),
            pace,
        }
    }

    pub(super) fn builtin(
        leases: &Arc<LeaseService>,
        (store, config): (&SecretString, &LeaseConfig),
        clock: &Clock,
    ) -> Self {
        let address = match &config.store {
            Some(stores) => stores.addresses().join(", "),
            None => address(store.expose_secret()),
        };
        let (name, adapter) = (
            BackendName::builtin(),
            Builtin::new(leases.clone(), address, clock.clone()),
        );
        Self {
            adapter: Arc::new(Instrumented::new(&name, Arc::new(adapter))),
            name,
            pace: BUILTIN_PACE,
        }
    }

    pub(super) fn info(&self) -> BackendInfo {
        BackendInfo {
            name: self.name.clone(),
            kind: self.adapter.kind(),
            address: self.adapter.address(),
            poll_interval_ms: millis(self.pace.poll_interval),
            capabilities: self.adapter.capabilities(),
            traits: self.adapter.traits(),
        }
    }
}

impl BackendTask {
    /// Starts the observation tasks, until `stop`. Returns the adapter for direct reads; `None` if the inventory is
    /// full.
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
            let now = clock.now();
            let release = ForceRelease {
                source: source.clone(),
                resource: resource.clone(),
                generation: generation.clone(),
                at: now.wall,
            };
            of.record_unlocked(&name, release, now.tick);
        };
        Some(Arc::new(RefreshOnRelease::new(adapter, hints, unlocked)))
    }
}

/// Address of the store, without user and password.
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
