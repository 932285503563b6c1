//! Configuration reload: backends, identity rules, the log filter and the OIDC client secret change; all other changed keys need a
//! restart and are listed. Leases, streams and sessions continue. The configuration is validated before: it is
//! applied completely or not at all.

use std::sync::Arc;

use domain::audit::Action;
use parking_lot::Mutex;
use serde_json::json;
use thiserror::Error;

use super::backend_supervisor::{BackendSupervisor, Changes};
use super::restart_keys::StartedConfig;
use crate::audit::{Audit, Entry, Origin};
use crate::identity::{Oidc, Principal};
use config::{self, Config, ConfigErrors};
use runtime::telemetry::{self, TelemetryError};

/// A configuration with the source of each key.
#[derive(Debug, Clone)]
pub struct ReloadReport {
    pub config: Config,
    pub entries: Vec<config::Entry>,
}

/// Result of a reload.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reloaded {
    pub backends: Changes,
    /// The new log filter, if changed.
    pub log: Option<String>,
    /// The OIDC client secret has changed.
    pub client_secret: bool,
    /// Changed keys that apply only after a restart.
    pub needs_restart: Vec<String>,
}

#[derive(Debug, Error)]
pub enum ReloadError {
    #[error(transparent)]
    Log(#[from] TelemetryError),
}

pub struct Reloader {
    supervisor: Arc<BackendSupervisor>,
    audit: Audit,
    oidc: Option<Arc<Oidc>>,
    started: Mutex<Option<StartedConfig>>,
}

impl Reloader {
    pub(super) fn new(supervisor: Arc<BackendSupervisor>, audit: Audit, oidc: Option<Arc<Oidc>>) -> Self {
        Self {
            supervisor,
            audit,
            oidc,
            started: Mutex::default(),
        }
    }

    /// Records the configuration that the server was started with.
    pub fn began_with(&self, report: ReloadReport) {
        *self.started.lock() = Some(StartedConfig::new(report));
    }

    /// Applies the settings that can change at runtime, and appends an audit entry.
    ///
    /// # Errors
    /// The log filter is invalid; nothing was changed.
    pub async fn apply(&self, report: &ReloadReport) -> Result<Reloaded, ReloadError> {
        let log = telemetry::set_filter(&report.config.log.filter)?;
        let rules = report.config.identity_rules.clone();
        self.supervisor.inventory.set_identity_rules(rules);
        let mut reloaded = Reloaded {
            backends: self.supervisor.apply(&report.config.backends),
            log: log.then(|| report.config.log.filter.clone()),
            client_secret: self.renew_secret(&report.config),
            needs_restart: self.needs_restart(report),
        };
        if reloaded.client_secret {
            reloaded
                .needs_restart
                .retain(|key| !key.starts_with("oidc.client_secret"));
        }
        let mut entry = self.entry("applied");
        entry.after = Some(json!({
            "added": reloaded.backends.added,
            "changed": reloaded.backends.changed,
            "removed": reloaded.backends.removed,
            "log": reloaded.log,
            "clientSecret": reloaded.client_secret.then_some("replaced"),
            "needsRestart": reloaded.needs_restart,
        }));
        self.record(entry).await;
        Ok(reloaded)
    }

    /// Sessions continue; the next sign-in uses the new secret.
    fn renew_secret(&self, config: &Config) -> bool {
        match (&self.oidc, &config.access.oidc) {
            (Some(oidc), Some(config)) => oidc.renew_secret(config),
            // Enabling or disabling the provider needs a restart.
            _ => false,
        }
    }

    /// Records a refused configuration; the old one stays. The audit entry lists the keys.
    pub async fn refused(&self, errors: &ConfigErrors) {
        let keys: Vec<&str> = errors.0.iter().map(|error| error.key.as_str()).collect();
        let mut entry = self.entry("refused");
        entry.after = Some(json!({"mistakes": keys}));
        self.record(entry).await;
    }

    fn entry(&self, outcome: &str) -> Entry {
        let actor = Principal::system("SIGHUP").actor(None);
        Entry::new(Action::ConfigReload, outcome, actor, Origin::default())
    }

    /// A store that does not answer must not prevent a reload.
    async fn record(&self, entry: Entry) {
        if let Err(error) = self.audit.append(entry).await {
            tracing::error!("the configuration reload could not be recorded in the audit log: {error}");
        }
    }

    fn needs_restart(&self, now: &ReloadReport) -> Vec<String> {
        let started = self.started.lock();
        started
            .as_ref()
            .map(|before| before.changed_keys(now))
            .unwrap_or_default()
    }
}
