//! Another configuration while the server runs: backends, the log filter and the client's secret at the identity provider
//! change, everything else needs a restart and is named. Leases, streams and sessions go on. The configuration was read and judged before it comes here: whole, or not
//! at all.

use std::sync::{Arc, Mutex, PoisonError};

use domain::audit::Action;
use secrecy::ExposeSecret as _;
use serde_json::json;
use thiserror::Error;

use super::watching::{Changes, Watching};
use crate::audit::{Audit, Entry, Origin};
use crate::config::{self, Config, ConfigErrors};
use crate::identity::{Oidc, Who};
use crate::telemetry::{self, TelemetryError};

/// A configuration with the story of its keys.
#[derive(Debug, Clone)]
pub struct Told {
    pub config: Config,
    pub entries: Vec<config::Entry>,
}

/// What another configuration has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reloaded {
    pub backends: Changes,
    /// The new filter, where it is another one.
    pub log: Option<String>,
    /// The client has another secret at the identity provider.
    pub client_secret: bool,
    /// Keys that are another now and count only from the next start.
    pub needs_restart: Vec<String>,
}

#[derive(Debug, Error)]
pub enum ReloadError {
    #[error(transparent)]
    Log(#[from] TelemetryError),
}

pub struct Reloader {
    watching: Arc<Watching>,
    audit: Audit,
    oidc: Option<Arc<Oidc>>,
    /// As it was at the start: what counts until the next one.
    started: Mutex<Option<Told>>,
}

impl Reloader {
    pub(super) fn new(watching: Arc<Watching>, audit: Audit, oidc: Option<Arc<Oidc>>) -> Self {
        Self {
            watching,
            audit,
            oidc,
            started: Mutex::default(),
        }
    }

    /// What the server was started with.
    pub fn began_with(&self, told: Told) {
        *self.started.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
    }

    /// Applies what can be applied, and leaves a row in the record.
    ///
    /// # Errors
    /// The log filter cannot be set; then nothing was changed.
    pub async fn apply(&self, told: &Told) -> Result<Reloaded, ReloadError> {
        let log = telemetry::set_filter(&told.config.log.filter)?;
        let mut reloaded = Reloaded {
            backends: self.watching.apply(&told.config.backends),
            log: log.then(|| told.config.log.filter.clone()),
            client_secret: self.renew_secret(&told.config),
            needs_restart: self.needs_restart(told),
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

    /// Nobody's session ends: it is the next sign-in that is made with it.
    fn renew_secret(&self, config: &Config) -> bool {
        match (&self.oidc, &config.access.oidc) {
            (Some(oidc), Some(config)) => oidc.renew_secret(config),
            // That there is one at all needs a restart, and is named.
            _ => false,
        }
    }

    /// The new configuration has mistakes, and the old one stays. The record names the keys.
    pub async fn refused(&self, errors: &ConfigErrors) {
        let keys: Vec<&str> = errors.0.iter().map(|error| error.key.as_str()).collect();
        let mut entry = self.entry("refused");
        entry.after = Some(json!({"mistakes": keys}));
        self.record(entry).await;
    }

    fn entry(&self, outcome: &str) -> Entry {
        let actor = Who::system("SIGHUP").actor(None);
        Entry::new(Action::ConfigReload, outcome, actor, Origin::default())
    }

    /// A store that does not answer keeps nobody from mending the configuration.
    async fn record(&self, entry: Entry) {
        if let Err(error) = self.audit.append(entry).await {
            tracing::error!("the reload of the configuration is not in the audit record: {error}");
        }
    }

    fn needs_restart(&self, now: &Told) -> Vec<String> {
        let started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        started
            .as_ref()
            .map(|before| needs_restart(before, now))
            .unwrap_or_default()
    }
}

/// Keys outside `[[backend]]` and `log` whose values differ. Of a secret no value is there to compare.
fn needs_restart(before: &Told, now: &Told) -> Vec<String> {
    let value = |told: &Told, key: &str| {
        let entry = told.entries.iter().find(|entry| entry.key == key);
        entry.map(|entry| entry.value.clone())
    };
    let all = before.entries.iter().chain(&now.entries);
    let mut keys: Vec<String> = all
        .map(|entry| entry.key.clone())
        .filter(|key| key != "log" && !key.starts_with("backend"))
        .filter(|key| value(before, key) != value(now, key))
        .collect();
    // Its value is shown without the password.
    if before.config.store.expose_secret() != now.config.store.expose_secret() {
        keys.push("store".to_owned());
    }
    keys.sort();
    keys.dedup();
    keys
}
