//! Configuration of any adapter, its running watch, the change notifications that it sent, and what its scans find.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ::backends::change_notification::Pending;
use ::backends::{Backend, BackendError, Batch, Budget, Hints, NamePredicate, Pass, Sink};
use ::config::backend::{BackendConfig, SCAN_TIMEOUT_DEFAULT, SystemConfig, TIMEOUT_DEFAULT};
use ::config::tls::TlsConfig;
use domain::backend::WatchState;
use domain::names::{BackendName, Resource, Source};
use domain::observation::ObservedLock;
use domain::tick::Tick;
use runtime::clock::Clock;
use runtime::tasks;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The one clock of all adapters of this process, so that tests can compare moments with theirs.
pub(crate) fn clock() -> Clock {
    static CLOCK: OnceLock<Clock> = OnceLock::new();
    CLOCK.get_or_init(Clock::start).clone()
}

/// With the defaults of the configuration.
pub(crate) fn backend_config(name: &str, system: SystemConfig) -> BackendConfig {
    BackendConfig {
        name: BackendName::parse(name).unwrap(),
        poll_interval: Duration::from_secs(2),
        timeout: TIMEOUT_DEFAULT,
        scan_timeout: SCAN_TIMEOUT_DEFAULT,
        tls: TlsConfig::default(),
        user: None,
        password: None,
        system,
    }
}

pub(crate) struct Watching {
    hints: Hints,
    pending: Pending,
    /// All that it reported, in order.
    pub(crate) states: Vec<WatchState>,
    _stop: DropGuard,
}

impl Watching {
    pub(crate) fn start(backend: Arc<dyn Backend>) -> Self {
        let hints = Hints::default();
        let stop = CancellationToken::new();
        let given = hints.clone();
        tasks::spawn("watch", stop.clone(), async move { backend.watch(given).await });
        Self {
            hints,
            pending: Pending::default(),
            states: Vec::new(),
            _stop: stop.drop_guard(),
        }
    }

    /// Gathers notifications until `enough`, then forgets them.
    pub(crate) async fn until(&mut self, what: &str, enough: impl Fn(&Pending) -> bool) -> Pending {
        let patience = Duration::from_secs(60);
        while !enough(&self.pending) {
            let more = tokio::time::timeout(patience, self.hints.take()).await;
            let more =
                more.unwrap_or_else(|_| panic!("not within {patience:?}: {what}; got {:?}", self.pending));
            self.pending.relist |= more.relist;
            self.pending.names.extend(more.names);
            self.states.extend(more.state.clone());
            self.pending.state = more.state.or(self.pending.state.take());
        }
        std::mem::take(&mut self.pending)
    }

    pub(crate) async fn live(&mut self) -> Pending {
        let is_live = |pending: &Pending| pending.state == Some(WatchState::Live);
        self.until("the watch is live", is_live).await
    }

    pub(crate) async fn reconnecting(&mut self) -> Pending {
        let down = |pending: &Pending| matches!(pending.state, Some(WatchState::Reconnecting { .. }));
        self.until("the watch is known to be down", down).await
    }

    pub(crate) async fn named(&mut self, source: &str, resource: &str) {
        let name = (Source::parse(source).unwrap(), Resource::from(resource));
        self.until(resource, |pending| pending.names.contains(&name))
            .await;
    }

    pub(crate) async fn relist(&mut self, what: &str) {
        self.until(what, |pending| pending.relist).await;
    }
}

/// The output of one scan or refresh, by the text of the name.
#[derive(Debug, Default)]
pub(crate) struct SeenLocks {
    pub(crate) locks: BTreeMap<String, (Tick, ObservedLock)>,
    pub(crate) gone: Vec<String>,
    pub(crate) pass: Option<Pass>,
}

impl Sink for SeenLocks {
    fn accept(&mut self, batch: Batch) {
        for lock in batch.locks {
            self.locks.insert(lock.resource.text(), (batch.sent_at, lock));
        }
        self.gone
            .extend(batch.gone.into_iter().map(|(_, resource)| resource.text()));
    }
}

impl SeenLocks {
    #[track_caller]
    pub(crate) fn lock(&self, resource: &str) -> &ObservedLock {
        let found = self.locks.get(resource);
        &found
            .unwrap_or_else(|| panic!("{resource} in {:?}", self.names()))
            .1
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.locks.keys().map(String::as_str).collect()
    }

    pub(crate) fn fault(&self) -> &str {
        let pass = self.pass.as_ref().unwrap();
        pass.sources
            .iter()
            .find_map(|source| source.fault.as_deref())
            .unwrap_or_default()
    }

    /// Completely read, without a fault.
    pub(crate) fn is_whole(&self) -> bool {
        let mut sources = self.pass.as_ref().unwrap().sources.iter();
        sources.all(|source| source.coverage.is_complete() && source.fault.is_none())
    }
}

pub(crate) async fn scan(backend: &dyn Backend) -> Result<SeenLocks, BackendError> {
    scan_within(backend, Duration::from_secs(60)).await
}

pub(crate) async fn scan_within(
    backend: &dyn Backend,
    time_max: Duration,
) -> Result<SeenLocks, BackendError> {
    let mut seen = SeenLocks::default();
    let pass = backend.observe(Budget { time_max }, &mut seen).await?;
    seen.pass = Some(pass);
    Ok(seen)
}

/// The parts that a scan has read completely.
#[derive(Default)]
pub(crate) struct ReadParts(Vec<(Source, NamePredicate)>);

impl Sink for ReadParts {
    fn accept(&mut self, _batch: Batch) {}

    fn read_part(&mut self, source: &Source, covers: NamePredicate) {
        self.0.push((source.clone(), covers));
    }
}

impl ReadParts {
    /// Of a scan that is partial in every source.
    pub(crate) async fn from_partial_scan(backend: &dyn Backend) -> Self {
        let mut parts = Self::default();
        let time_max = Duration::from_secs(60);
        let pass = backend.observe(Budget { time_max }, &mut parts).await.unwrap();
        let mut sources = pass.sources.iter();
        assert!(
            sources.all(|source| !source.coverage.is_complete()),
            "{:?}",
            pass.sources
        );
        parts
    }

    /// Whether the scan would have found a lock of this name.
    pub(crate) fn has_read(&self, source: &str, name: &str) -> bool {
        let is_part =
            |(part, covers): &(Source, NamePredicate)| part.as_str() == source && covers(name.as_bytes());
        self.0.iter().any(is_part)
    }
}

pub(crate) async fn refresh(
    backend: &dyn Backend,
    source: &str,
    names: &[&str],
) -> Result<SeenLocks, BackendError> {
    let named = |name: &&str| (Source::parse(source).unwrap(), Resource::from(*name));
    let names: Vec<(Source, Resource)> = names.iter().map(named).collect();
    let mut seen = SeenLocks::default();
    backend.refresh(&names, &mut seen).await?;
    Ok(seen)
}

#[track_caller]
pub(crate) fn owner(lock: &ObservedLock) -> &str {
    lock.owner.known().unwrap().as_str()
}

#[track_caller]
pub(crate) fn token(lock: &ObservedLock) -> u64 {
    lock.fencing_token.known().unwrap().number()
}
