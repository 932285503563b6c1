//! One throwaway etcd with an adapter, a client of our own, and a sink that stores its input.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use ::backends::etcd::{EtcdBackend, connect};
use ::backends::{Backend, BackendError, Batch, Budget, Pass, Sink};
use ::config::backend::{BackendConfig, SCAN_TIMEOUT_DEFAULT, SystemConfig};
use ::config::etcd::EtcdConfig;
use ::testkit::{Etcd, EtcdOptions, Throwaway};
use domain::names::{Resource, Source};
use domain::observation::{Lifetime, ObservedLock};
use domain::reported::Reported;
use domain::tick::Tick;
use etcd_client::{Client, PutOptions};

use crate::support::watching::{backend_config, clock};

pub(crate) struct WatchedEtcd {
    pub(crate) etcd: Etcd,
    pub(crate) client: Client,
    pub(crate) backend: EtcdBackend,
}

impl WatchedEtcd {
    pub(crate) async fn start() -> Self {
        let etcd = etcd(&[]).await;
        let client = client(&etcd.endpoint()).await;
        let backend = backend(&[etcd.endpoint()], &["/locks/"], |_| {});
        Self {
            etcd,
            client,
            backend,
        }
    }

    pub(crate) async fn lease(&mut self, ttl_s: i64) -> i64 {
        self.client.lease_grant(ttl_s, None).await.unwrap().id()
    }

    pub(crate) async fn put(
        &mut self,
        key: impl Into<Vec<u8>>,
        value: impl Into<Vec<u8>>,
        lease: i64,
    ) -> u64 {
        let put = self
            .client
            .put(key, value, Some(PutOptions::new().with_lease(lease)))
            .await
            .unwrap();
        u64::try_from(put.header().unwrap().revision()).unwrap()
    }

    /// A position in the queue of `name`, as `concurrency` creates it: returns lease and create revision.
    pub(crate) async fn enqueue(&mut self, name: &str, value: &str, ttl_s: i64) -> (i64, u64) {
        let lease = self.lease(ttl_s).await;
        let revision = self.put(format!("{name}/{lease:x}"), value, lease).await;
        (lease, revision)
    }

    pub(crate) async fn seen(&self) -> SeenLocks {
        seen(&self.backend).await.unwrap()
    }
}

pub(crate) async fn etcd(args: &[&str]) -> Etcd {
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    Throwaway::etcd(EtcdOptions {
        fast: true,
        args,
        ..Default::default()
    })
    .await
    .unwrap()
}

pub(crate) async fn client(endpoint: &str) -> Client {
    Client::connect([endpoint], None).await.unwrap()
}

/// The defaults of the configuration, changed by `change`.
pub(crate) fn try_backend(
    endpoints: &[String],
    prefixes: &[&str],
    change: impl FnOnce(&mut BackendConfig),
) -> Result<EtcdBackend, BackendError> {
    try_backend_with(endpoints, prefixes, change, |_| {})
}

/// As [`try_backend`], with the etcd settings changed as well.
pub(crate) fn try_backend_with(
    endpoints: &[String],
    prefixes: &[&str],
    change: impl FnOnce(&mut BackendConfig),
    change_etcd: impl FnOnce(&mut EtcdConfig),
) -> Result<EtcdBackend, BackendError> {
    let mut etcd = EtcdConfig {
        endpoints: endpoints.to_vec(),
        prefixes: prefixes.iter().map(|prefix| (*prefix).to_owned()).collect(),
        unlock_user: None,
        unlock_password: None,
    };
    change_etcd(&mut etcd);
    let mut config = backend_config("coord", SystemConfig::Etcd(etcd.clone()));
    change(&mut config);
    connect(&config, &etcd, clock())
}

pub(crate) fn backend(
    endpoints: &[String],
    prefixes: &[&str],
    change: impl FnOnce(&mut BackendConfig),
) -> EtcdBackend {
    try_backend(endpoints, prefixes, change).unwrap()
}

/// The output of one scan or refresh, by source and text of the name.
#[derive(Debug, Default)]
pub(crate) struct SeenLocks {
    pub(crate) locks: BTreeMap<(String, String), (Tick, ObservedLock)>,
    /// With repetitions.
    pub(crate) rows: usize,
    pub(crate) gone: Vec<(Source, Resource)>,
    pub(crate) pass: Option<Pass>,
}

impl Sink for SeenLocks {
    fn accept(&mut self, batch: Batch) {
        self.rows += batch.locks.len();
        for lock in batch.locks {
            let name = (lock.source.to_string(), lock.resource.text());
            self.locks.insert(name, (batch.sent_at, lock));
        }
        self.gone.extend(batch.gone);
    }
}

impl SeenLocks {
    pub(crate) fn lock(&self, source: &str, resource: &str) -> &ObservedLock {
        let name = (source.to_owned(), resource.to_owned());
        &self
            .locks
            .get(&name)
            .unwrap_or_else(|| panic!("{name:?} in {:?}", self.names()))
            .1
    }

    pub(crate) fn names(&self) -> Vec<(&str, &str)> {
        self.locks
            .keys()
            .map(|(source, resource)| (source.as_str(), resource.as_str()))
            .collect()
    }

    pub(crate) fn pass(&self) -> &Pass {
        self.pass.as_ref().unwrap()
    }

    pub(crate) fn whole(&self) -> bool {
        self.pass()
            .sources
            .iter()
            .all(|source| source.coverage.is_complete() && source.fault.is_none())
    }
}

pub(crate) async fn seen(backend: &EtcdBackend) -> Result<SeenLocks, BackendError> {
    seen_within(backend, SCAN_TIMEOUT_DEFAULT).await
}

pub(crate) async fn seen_within(
    backend: &EtcdBackend,
    time_max: Duration,
) -> Result<SeenLocks, BackendError> {
    let mut seen = SeenLocks::default();
    let pass = backend.observe(Budget { time_max }, &mut seen).await?;
    seen.pass = Some(pass);
    Ok(seen)
}

pub(crate) async fn refreshed(
    backend: &EtcdBackend,
    names: &[(&str, &str)],
) -> Result<SeenLocks, BackendError> {
    let names: Vec<(Source, Resource)> = names
        .iter()
        .map(|(source, resource)| (source_of(source), Resource::from_text(resource)))
        .collect();
    let mut seen = SeenLocks::default();
    backend.refresh(&names, &mut seen).await?;
    Ok(seen)
}

pub(crate) fn source_of(word: &str) -> Source {
    Source::parse(word).unwrap()
}

pub(crate) fn remaining_ms(lock: &ObservedLock) -> i64 {
    match &lock.lifetime {
        Lifetime::Leased { remaining_ms, .. } => *remaining_ms,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn granted_ms(lock: &ObservedLock) -> i64 {
    match &lock.lifetime {
        Lifetime::Leased {
            ttl_ms: Reported::Value(ms),
            ..
        } => *ms,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn owner(lock: &ObservedLock) -> &str {
    lock.owner.known().unwrap().as_str()
}

pub(crate) fn token(lock: &ObservedLock) -> u64 {
    lock.fencing_token.known().unwrap().number()
}

/// `etcdctl` against this endpoint.
pub(crate) fn etcdctl(endpoint: &str) -> tokio::process::Command {
    let program = PathBuf::from("/usr/bin/etcdctl");
    assert!(
        program.exists(),
        "etcdctl is not installed; install it with: apt-get install -y etcd-client"
    );
    let mut command = tokio::process::Command::new(program);
    command
        .env("ETCDCTL_API", "3")
        .arg("--endpoints")
        .arg(endpoint)
        .kill_on_drop(true);
    command
}
