//! The Consul adapter: keys that sessions hold.
//!
//! Owns reading Consul and forced unlocks. Does not diagnose locks or keep an inventory.
//!
//! **Invariant**: requests with the watching token never write. The unlocking token releases one
//! key in a transaction that compares its session and its index; sessions are never destroyed.

mod acl;
mod detail;
mod entry;
mod error;
mod hidden_sessions;
mod http;
mod json_elements;
mod lock_delays;
mod lookup;
mod probe;
mod read;
mod release;
mod row;
mod scan;
mod settings;
mod watch;

use std::sync::atomic::AtomicI64;

use domain::backend::{BackendKind, BackendTraits, Capability};
use domain::force_release::{Act, Release};
use domain::generation::Generation;
use domain::names::{Resource, Source};
use domain::observation::Inspection;
use domain::safety::{Safety, SafetyClass};
use futures::future::BoxFuture;

use super::error::within;
use super::{Backend, BackendError, Budget, Hints, Pass, Probe, RELEASE, Sink};
use config::BackendConfig;
use config::consul::ConsulConfig;
use hidden_sessions::HiddenSessions;
use http::Http;
use lock_delays::LockDelays;
use runtime::clock::Clock;
use settings::ConsulSettings;

pub struct ConsulBackend {
    http: Http,
    delays: LockDelays,
    hidden_sessions: HiddenSessions,
    /// With the token of forced unlocks, if configured.
    unlocks: Option<Box<Http>>,
    /// Duration of the last scan, in milliseconds.
    scan_ms: AtomicI64,
}

/// Prepares the adapter without a connection: an unreachable agent fails later calls.
///
/// # Errors
/// [`BackendError::Misconfigured`]: an invalid URL, unreadable TLS files.
pub fn connect(
    config: &BackendConfig,
    consul: &ConsulConfig,
    clock: Clock,
) -> Result<ConsulBackend, BackendError> {
    let http = |token| {
        let settings = ConsulSettings::check(config, consul)?;
        let client = settings::client(&config.tls, token)?;
        Ok::<_, BackendError>(Http::new(settings, clock.clone(), client))
    };
    Ok(ConsulBackend {
        http: http(consul.token.as_ref())?,
        delays: LockDelays::default(),
        hidden_sessions: HiddenSessions::default(),
        unlocks: match &consul.unlock_token {
            Some(token) => Some(Box::new(http(Some(token))?)),
            None => None,
        },
        scan_ms: AtomicI64::new(0),
    })
}

impl Backend for ConsulBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Consul
    }

    fn address(&self) -> String {
        self.http.settings.url.as_str().trim_end_matches('/').to_owned()
    }

    fn capabilities(&self) -> Vec<Capability> {
        vec![
            Capability::new(
                "watch",
                true,
                "a blocking query per prefix reports that something changed and starts a scan",
            ),
            Capability::new(
                "waiters",
                false,
                "Consul has no record of sessions that wait for a key",
            ),
            Capability::new(
                "fencing",
                true,
                "the key's LockIndex, which rises with each acquisition while the key exists",
            ),
            Capability::new(
                "ttl",
                true,
                "the granted TTL of the session; the time left is not reported",
            ),
            match self.unlocks {
                Some(_) => Capability::new(RELEASE, true, release::HOW),
                None => Capability::new(RELEASE, false, release::NO_ACCOUNT),
            },
            Capability::new("clock", false, scan::NO_CLOCK),
        ]
    }

    fn traits(&self) -> BackendTraits {
        BackendTraits::default()
    }

    fn safety(&self, _source: &Source) -> Safety {
        Safety {
            class: SafetyClass::Correctness,
            why: "consensus, and the LockIndex rises with each acquisition until the key is deleted".into(),
        }
    }

    fn grain_ms(&self, _source: &Source) -> i64 {
        0
    }

    fn observe<'a>(
        &'a self,
        budget: Budget,
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, Result<Pass, BackendError>> {
        Box::pin(self.pass(budget, sink))
    }

    fn refresh<'a>(
        &'a self,
        names: &'a [(Source, Resource)],
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(within(
            self.http.settings.timeout * 2,
            self.refresh_named(names, sink),
        ))
    }

    fn watch<'a>(&'a self, hints: Hints) -> BoxFuture<'a, ()> {
        Box::pin(async move { self.watch_prefixes(&hints).await })
    }

    fn inspect<'a>(
        &'a self,
        source: &'a Source,
        resource: &'a Resource,
    ) -> BoxFuture<'a, Result<Inspection, BackendError>> {
        let detail = async { self.detail(source, resource).await.map_err(|fault| fault.error) };
        Box::pin(within(self.http.settings.timeout, detail))
    }

    fn release<'a>(
        &'a self,
        source: &'a Source,
        resource: &'a Resource,
        generation: &'a Generation,
        _act: &'a Act,
    ) -> BoxFuture<'a, Result<Release, BackendError>> {
        Box::pin(release::release(self, source, resource, generation))
    }

    fn probe(&self) -> BoxFuture<'_, Result<Probe, BackendError>> {
        Box::pin(within(self.http.settings.timeout * 2, self.probe_agent()))
    }
}
