//! The observed backends, and their changes while the server runs: added ones start, removed ones stop, unchanged
//! ones continue.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use domain::names::BackendName;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::backend_task::BackendTask;
use super::file_fingerprints::FileFingerprints;
use super::observable_gauges;
use backends::{Backend, BackendRegistry};
use config::BackendConfig;
use inventory::{BackendInfo, Inventory};
use runtime::clock::Clock;

pub(super) struct BackendSupervisor {
    pub(super) inventory: Arc<Inventory>,
    pub(super) registry: Arc<BackendRegistry>,
    clock: Clock,
    stop: CancellationToken,
    running: Mutex<HashMap<BackendName, Running>>,
}

/// A backend that is being observed.
struct Running {
    /// `None`: the built-in lease service, which is always present.
    config: Option<BackendConfig>,
    /// Fingerprints of its files when it started.
    held: Option<FileFingerprints>,
    info: BackendInfo,
    adapter: Arc<dyn Backend>,
    stop: CancellationToken,
}

/// Names of changed backends, in the order of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    pub added: Vec<String>,
    pub changed: Vec<String>,
    pub removed: Vec<String>,
}

impl BackendSupervisor {
    /// Starts observation of the configured backends and the lease service.
    pub(super) fn start(
        configs: &[BackendConfig],
        builtin: BackendTask,
        clock: &Clock,
        stop: &CancellationToken,
    ) -> Arc<Self> {
        let builtin_info = builtin.info();
        let supervisor = Self {
            inventory: Inventory::new(vec![builtin_info.clone()]),
            registry: Arc::default(),
            clock: clock.clone(),
            stop: stop.clone(),
            running: Mutex::default(),
        };
        supervisor.begin(builtin, builtin_info, None, &mut supervisor.running());
        supervisor.apply(configs);
        Arc::new(supervisor)
    }

    /// Applies a new list of backends. Alerts, history and grants keep the name of a removed backend.
    pub(super) fn apply(&self, configs: &[BackendConfig]) -> Changes {
        let mut running = self.running();
        let mut changes = Changes::default();
        let mut fresh = Vec::new();
        for config in configs {
            let held = FileFingerprints::from_config(&config.tls);
            match running.get(&config.name) {
                Some(Running {
                    config: Some(old),
                    held: Some(before),
                    ..
                }) if old.is_same(config) && *before == held => continue,
                Some(_) => changes.changed.push(config.name.to_string()),
                None => changes.added.push(config.name.to_string()),
            }
            let task = BackendTask::configured(config, &self.clock);
            fresh.push((task.info(), task, (config.clone(), held)));
        }
        let is_fresh = |name: &BackendName| fresh.iter().any(|(info, ..)| info.name == *name);
        let is_wanted = |name: &BackendName| configs.iter().any(|config| config.name == *name);
        let removed_names: Vec<BackendName> = running
            .iter()
            .filter(|(name, backend)| backend.config.is_some() && (is_fresh(name) || !is_wanted(name)))
            .map(|(name, _)| name.clone())
            .collect();
        for name in removed_names {
            if !is_wanted(&name) {
                changes.removed.push(name.to_string());
            }
            if let Some(ended) = running.remove(&name) {
                ended.stop.cancel();
            }
        }
        let stay: HashSet<BackendName> = running.keys().cloned().collect();
        let infos = running.values().map(|backend| backend.info.clone());
        let infos = infos.chain(fresh.iter().map(|(info, ..)| info.clone())).collect();
        self.inventory.reconfigure(in_order(infos, configs), &stay);
        for (info, task, config) in fresh {
            self.begin(task, info, Some(config), &mut running);
        }
        self.registry.replace(rows(&running, configs));
        changes.removed.sort();
        changes
    }

    fn begin(
        &self,
        one: BackendTask,
        info: BackendInfo,
        config: Option<(BackendConfig, FileFingerprints)>,
        running: &mut HashMap<BackendName, Running>,
    ) {
        let stop = self.stop.child_token();
        if let Some(adapter) = one.observe(&self.inventory, &self.clock, &stop) {
            observable_gauges::zero_counters(&info);
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

    fn running(&self) -> parking_lot::MutexGuard<'_, HashMap<BackendName, Running>> {
        self.running.lock()
    }
}

/// Position in the configuration; the built-in lease service is last.
fn config_position(name: &BackendName, configs: &[BackendConfig]) -> usize {
    let position = configs.iter().position(|config| config.name == *name);
    position.unwrap_or(configs.len())
}

fn in_order(mut infos: Vec<BackendInfo>, configs: &[BackendConfig]) -> Vec<BackendInfo> {
    infos.sort_by_key(|info| config_position(&info.name, configs));
    infos
}

fn rows(
    running: &HashMap<BackendName, Running>,
    configs: &[BackendConfig],
) -> Vec<(BackendName, Arc<dyn Backend>)> {
    let rows = running
        .iter()
        .map(|(name, backend)| (name.clone(), backend.adapter.clone()));
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|(name, _)| config_position(name, configs));
    rows
}
