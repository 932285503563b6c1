//! Calls to an etcd cluster: one member at a time, the next one when it does not answer.
//!
//! etcd's Rust client would spread calls over all members, including dead ones, so each client here has one endpoint.
//!
//! **Invariants**: no call takes longer than [`REPLY_TIMEOUT`]. A call may be sent several times, so it must have the
//! same effect then: a transaction that compares what it replaces.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use config::LeaseStoreConfig;
use domain::duration::millis;
use etcd_client::{Certificate, Client, ConnectOptions, Error, Identity, TlsOptions};
use etcd_cluster::{ClusterAccess, ClusterReader};
use parking_lot::Mutex;
use runtime::clock::Clock;
use secrecy::ExposeSecret as _;

use super::error::{EtcdError, EtcdErrorKind};
use crate::error::LeaseOpenError;
use crate::store::StoreError;

/// Below 2 s, the limit within which clients must learn of an outage.
pub(super) const REPLY_TIMEOUT: Duration = Duration::from_millis(1_500);
/// A member that does not answer leaves time for two others.
const MEMBER_TIMEOUT: Duration = Duration::from_millis(500);
/// Between two calls while the cluster elects a leader.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);
/// HTTP/2 pings on a connection with open calls; etcd closes connections that ping more often than every 5 s.
const PING_INTERVAL: Duration = Duration::from_secs(6);

/// Endpoints, credentials and TLS.
#[derive(Clone)]
pub(super) struct EtcdSettings {
    pub(super) endpoints: Vec<String>,
    pub(super) options: ConnectOptions,
    pub(super) user: Option<String>,
}

pub(super) struct Link {
    settings: EtcdSettings,
    clock: Clock,
    clients: Vec<Mutex<Option<Client>>>,
    current: AtomicUsize,
}

/// Limits a piece of work of several calls.
///
/// # Errors
/// `NoAnswer` after [`REPLY_TIMEOUT`]; the outcome is unknown then.
pub(super) async fn with_timeout<T>(
    work: impl Future<Output = Result<T, StoreError>> + Send,
) -> Result<T, StoreError> {
    let no_answer = StoreError::NoAnswer(millis(REPLY_TIMEOUT).unsigned_abs());
    tokio::time::timeout(REPLY_TIMEOUT, work)
        .await
        .unwrap_or(Err(no_answer))
}

impl EtcdSettings {
    /// # Errors
    /// A certificate or key file cannot be read.
    pub(super) fn new(config: &LeaseStoreConfig) -> Result<Self, LeaseOpenError> {
        let mut options = ConnectOptions::new()
            .with_connect_timeout(MEMBER_TIMEOUT)
            .with_keep_alive(PING_INTERVAL, REPLY_TIMEOUT)
            // etcd counts pings on an idle connection as abuse.
            .with_keep_alive_while_idle(false)
            // A member without a leader fails at once instead of waiting.
            .with_require_leader(true)
            .with_auto_token_refresh(true);
        if let Some(user) = &config.user {
            let password = config
                .password
                .as_ref()
                .map(|password| password.0.expose_secret());
            options = options.with_user(user, password.unwrap_or_default());
        }
        if config.address.uses_tls() {
            options = options.with_tls(tls(config)?);
        }
        Ok(Self {
            endpoints: config.address.endpoints.clone(),
            options,
            user: config.user.clone(),
        })
    }

    /// # Errors
    /// A certificate or key file cannot be used.
    pub(super) fn cluster_reader(
        &self,
        config: &LeaseStoreConfig,
        clock: Clock,
    ) -> Result<ClusterReader, LeaseOpenError> {
        let access = ClusterAccess {
            endpoints: self.endpoints.clone(),
            options: self.options.clone(),
            without_login: None,
            tls: &config.tls,
        };
        ClusterReader::new(access, clock).map_err(|error| LeaseOpenError::Etcd {
            reason: error.to_string(),
            remedy: error.remedy().to_owned(),
            is_outage: false,
        })
    }
}

fn tls(config: &LeaseStoreConfig) -> Result<TlsOptions, LeaseOpenError> {
    let read = |path: &std::path::PathBuf| {
        std::fs::read(path).map_err(|source| LeaseOpenError::File {
            path: path.clone(),
            source,
        })
    };
    let mut tls = match &config.tls.ca_file {
        Some(file) => TlsOptions::new().ca_certificate(Certificate::from_pem(read(file)?)),
        None => TlsOptions::new().with_enabled_roots(),
    };
    if let (Some(cert), Some(key)) = (&config.tls.cert_file, &config.tls.key_file) {
        tls = tls.identity(Identity::from_pem(read(cert)?, read(key)?));
    }
    Ok(match &config.tls.server_name {
        Some(name) => tls.domain_name(name),
        None => tls,
    })
}

impl Link {
    pub(super) fn new(settings: EtcdSettings, clock: Clock) -> Self {
        let clients = settings.endpoints.iter().map(|_| Mutex::new(None)).collect();
        Self {
            settings,
            clock,
            clients,
            current: AtomicUsize::new(0),
        }
    }

    /// Runs `work` on the current member, and on the next one while members fail in a way that another may not.
    ///
    /// # Errors
    /// The last failure, after [`REPLY_TIMEOUT`] at the latest.
    pub(super) async fn call<T, W>(&self, work: impl Fn(Client) -> W) -> Result<T, EtcdError>
    where
        W: Future<Output = Result<T, Error>>,
    {
        let started = self.clock.tick();
        let mut last = EtcdError::no_answer();
        loop {
            let left_ms = millis(REPLY_TIMEOUT) - self.clock.tick().since(started);
            if left_ms <= 0 {
                return Err(last);
            }
            let index = self.current.load(Ordering::Relaxed);
            let share = MEMBER_TIMEOUT.min(Duration::from_millis(left_ms.unsigned_abs()));
            let attempt = tokio::time::timeout(share, async {
                let client = Box::pin(self.client(index)).await?;
                Box::pin(work(client)).await.map_err(EtcdError::from)
            });
            match attempt.await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(fault)) if fault.kind == EtcdErrorKind::Unavailable => {
                    last = fault;
                    self.abandon(index);
                    tokio::time::sleep(RETRY_INTERVAL).await;
                }
                Ok(Err(fault)) => return Err(fault),
                Err(_) => {
                    last = EtcdError::no_answer();
                    self.abandon(index);
                }
            }
        }
    }

    /// Runs `work` on one member, once.
    ///
    /// # Errors
    /// The failure, after [`REPLY_TIMEOUT`] at the latest.
    pub(super) async fn call_member<T, W>(
        &self,
        index: usize,
        work: impl FnOnce(Client) -> W,
    ) -> Result<T, EtcdError>
    where
        W: Future<Output = Result<T, Error>>,
    {
        let attempt = tokio::time::timeout(REPLY_TIMEOUT, async {
            let client = Box::pin(self.client(index)).await?;
            Box::pin(work(client)).await.map_err(EtcdError::from)
        });
        attempt.await.unwrap_or_else(|_| Err(EtcdError::no_answer()))
    }

    pub(super) fn endpoints(&self) -> &[String] {
        &self.settings.endpoints
    }

    pub(super) fn user(&self) -> Option<&str> {
        self.settings.user.as_deref()
    }

    /// The current member.
    pub(super) fn index(&self) -> usize {
        self.current.load(Ordering::Relaxed)
    }

    async fn client(&self, index: usize) -> Result<Client, EtcdError> {
        let slot = &self.clients[index];
        if let Some(client) = slot.lock().clone() {
            return Ok(client);
        }
        let endpoint = [&self.settings.endpoints[index]];
        let client = Client::connect(endpoint, Some(self.settings.options.clone())).await?;
        Ok(slot.lock().get_or_insert(client).clone())
    }

    /// Closes the connection to a member and turns to the next one, unless another call has.
    pub(super) fn abandon(&self, index: usize) {
        *self.clients[index].lock() = None;
        let next = (index + 1) % self.clients.len();
        let _ = self
            .current
            .compare_exchange(index, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub(super) fn close(&self) {
        for slot in &self.clients {
            *slot.lock() = None;
        }
    }
}
