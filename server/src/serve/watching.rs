//! Everything that is observed, and its change while the server runs: what is configured anew begins, what is not
//! configured any more ends, what stays the same is not touched.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use domain::names::BackendName;
use tokio_util::sync::CancellationToken;

use super::renewed::Held;
use super::watched::Watched;
use crate::backends::{Backend, Roster};
use crate::clock::Clock;
use crate::config::BackendConfig;
use crate::inventory::{BackendInfo, Inventory};

pub(super) struct Watching {
    pub(super) inventory: Arc<Inventory>,
    pub(super) roster: Arc<Roster>,
    clock: Clock,
    stop: CancellationToken,
    running: Mutex<HashMap<BackendName, Running>>,
}

/// One that is observed now.
struct Running {
    /// None: the lease service of our own, which is always there.
    config: Option<BackendConfig>,
    /// Its files, as they were when it began.
    held: Option<Held>,
    info: BackendInfo,
    adapter: Arc<dyn Backend>,
    stop: CancellationToken,
}

/// What another configuration has changed, by name, in the order of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    pub added: Vec<String>,
    pub changed: Vec<String>,
    pub removed: Vec<String>,
}

impl Watching {
    /// Observes the configured backends and the lease service.
    pub(super) fn start(
        configs: &[BackendConfig],
        builtin: Watched,
        clock: &Clock,
        stop: &CancellationToken,
    ) -> Arc<Self> {
        let own = builtin.info();
        let watching = Self {
            inventory: Inventory::new(vec![own.clone()]),
            roster: Arc::default(),
            clock: clock.clone(),
            stop: stop.clone(),
            running: Mutex::default(),
        };
        watching.begin(builtin, own, None, &mut watching.running());
        watching.apply(configs);
        Arc::new(watching)
    }

    /// From now on these and no others. Alerts, history and grants that name a backend which is gone keep its name.
    pub(super) fn apply(&self, configs: &[BackendConfig]) -> Changes {
        let mut running = self.running();
        let mut changes = Changes::default();
        let mut fresh = Vec::new();
        for config in configs {
            let held = Held::of(&config.tls);
            match running.get(&config.name) {
                Some(Running {
                    config: Some(old),
                    held: Some(before),
                    ..
                }) if old.is_same(config) && *before == held => continue,
                Some(_) => changes.changed.push(config.name.to_string()),
                None => changes.added.push(config.name.to_string()),
            }
            let one = Watched::configured(config, &self.clock);
            fresh.push((one.info(), one, (config.clone(), held)));
        }
        let is_fresh = |name: &BackendName| fresh.iter().any(|(info, ..)| info.name == *name);
        let is_wanted = |name: &BackendName| configs.iter().any(|config| config.name == *name);
        let over: Vec<BackendName> = running
            .iter()
            .filter(|(name, it)| it.config.is_some() && (is_fresh(name) || !is_wanted(name)))
            .map(|(name, _)| name.clone())
            .collect();
        for name in over {
            if !is_wanted(&name) {
                changes.removed.push(name.to_string());
            }
            if let Some(ended) = running.remove(&name) {
                ended.stop.cancel();
            }
        }
        let stay: HashSet<BackendName> = running.keys().cloned().collect();
        let infos = running.values().map(|it| it.info.clone());
        let infos = infos.chain(fresh.iter().map(|(info, ..)| info.clone())).collect();
        self.inventory.reconfigure(in_order(infos, configs), &stay);
        for (info, one, config) in fresh {
            self.begin(one, info, Some(config), &mut running);
        }
        self.roster.replace(rows(&running, configs));
        changes.removed.sort();
        changes
    }

    fn begin(
        &self,
        one: Watched,
        info: BackendInfo,
        config: Option<(BackendConfig, Held)>,
        running: &mut HashMap<BackendName, Running>,
    ) {
        let stop = self.stop.child_token();
        if let Some(adapter) = one.observe(&self.inventory, &self.clock, &stop) {
            let name = info.name.clone();
            let (config, held) = config.unzip();
            running.insert(
                name,
                Running {
                    config,
                    held,
                    info,
                    adapter,
                    stop,
                },
            );
        }
    }

    fn running(&self) -> std::sync::MutexGuard<'_, HashMap<BackendName, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where it stands in the configuration; the lease service of our own is last.
fn place(name: &BackendName, configs: &[BackendConfig]) -> usize {
    let place = configs.iter().position(|config| config.name == *name);
    place.unwrap_or(configs.len())
}

fn in_order(mut infos: Vec<BackendInfo>, configs: &[BackendConfig]) -> Vec<BackendInfo> {
    infos.sort_by_key(|info| place(&info.name, configs));
    infos
}

fn rows(
    running: &HashMap<BackendName, Running>,
    configs: &[BackendConfig],
) -> Vec<(BackendName, Arc<dyn Backend>)> {
    let rows = running
        .iter()
        .map(|(name, it)| (name.clone(), it.adapter.clone()));
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|(name, _)| place(name, configs));
    rows
}
