//! Builds the server: adapters, inventory, observers, console, routes; and shuts it down in order.

mod backend_supervisor;
mod backend_task;
mod file_fingerprints;
pub(crate) mod installation;
pub mod listener;
mod observable_gauges;
pub mod reload;
mod restart_keys;
mod shutdown;

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Deref;
use std::sync::Arc;

use domain::waits::identity::IdentityRule;
use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use self::backend_supervisor::BackendSupervisor;
use self::backend_task::BackendTask;
use self::listener::Listener;
use self::listener::limits::Limits;
use self::listener::tls::{Certificate, TlsError};
use self::reload::Reloader;
use self::shutdown::ShutdownSequence;
use crate::alerts::{AlertDeps, Alerts, EvaluatorMonitor};
use crate::audit::{Audit, ChainCheckpoints, ChainVerifier};
use crate::console::{ChartSources, Searches, ServerConsole};
use crate::history::{History, Recording};
use crate::http::auth::{Authenticator, Hosts, Proxies, Streams};
use crate::http::lease::direct::WithDirectLeases;
use crate::http::{self, AppState, ConsoleFor, DemoConsole, Services};
use crate::identity::{Identity, Oidc, OidcSetupError};
use crate::notify::{Delivering, Notifier, secret_keys};
use crate::unlock::Unlocks;
use backends::BackendRegistry;
use config::access::Refusal;
use config::{AccessConfig, BackendConfig, HistoryConfig, Network, NotifyConfig};
use inventory::Inventory;
use lease::{LeaseConfig, LeaseOpenError, LeaseService};
use runtime::clock::Clock;
use runtime::db::{Db, DbError};
use runtime::shutdown::Readiness;
use runtime::tasks;

/// Configuration of the server.
pub struct Setup {
    pub listen: SocketAddr,
    /// `sqlite:path` or `postgres://…`: store of the lease service.
    pub store: SecretString,
    pub lease: LeaseConfig,
    pub backends: Vec<BackendConfig>,
    /// Which owners of different backends are one.
    pub identity_rules: Vec<IdentityRule>,
    pub access: AccessConfig,
    pub history: HistoryConfig,
    pub notify: NotifyConfig,
    /// Set by `leasehold demo` only.
    pub demo: Option<DemoConsole>,
    pub clock: Clock,
    /// Cancel to stop the server.
    pub stop: CancellationToken,
}

/// A running server; stops when its token is cancelled.
pub struct Serving {
    pub address: SocketAddr,
    /// Public URL, without a trailing slash.
    pub home: String,
    pub state: AppState,
    /// Applies a changed configuration while the server runs.
    pub reloader: Arc<Reloader>,
    task: JoinHandle<()>,
}

#[derive(Debug, Error)]
pub enum ServeError {
    #[error("listen: {}. {}", .0.why, .0.remedy)]
    PlainHttp(Refusal),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Oidc(#[from] OidcSetupError),
    #[error("TLS cannot be set up: {0}")]
    TlsSetup(#[from] rustls::Error),
    #[error("cannot listen on {address}: {source}; choose another `listen`, or stop what uses the port")]
    Listen {
        address: SocketAddr,
        source: std::io::Error,
    },
    #[error("the store of the lease service: {0}")]
    Store(#[from] LeaseOpenError),
    #[error("the store of users and of the audit log: {0}")]
    Console(#[from] DbError),
    #[error("cannot read users and tokens: {0}")]
    Users(#[from] sqlx::Error),
}

/// Starts observation and the HTTP server; returns when the port is open.
///
/// # Errors
/// Plain HTTP on a public address, an invalid certificate, a port in use, or a store that is not durable.
pub async fn start(setup: Setup) -> Result<Serving, ServeError> {
    let (store, access, clock, stop) = (setup.store, setup.access, setup.clock, setup.stop);
    let (listener, address) = bind(setup.listen, &access).await?;
    let tls = open_tls(&access, &stop)?;
    let leases = Box::pin(open_leases(&store, setup.lease.clone(), &clock, &stop)).await?;
    let builtin = BackendTask::builtin(&leases, (&store, &setup.lease), &clock);
    let supervisor = BackendSupervisor::start(&setup.backends, builtin, &clock, &stop);
    supervisor.inventory.set_identity_rules(setup.identity_rules);
    observable_gauges::start(&supervisor.inventory, &leases, &clock);
    let home = home(&access, address);
    let auth = Box::pin(open_authenticator(
        &store,
        (&access, setup.demo),
        &home,
        &clock,
        &stop,
    ))
    .await?;
    installation::record_floors(auth.audit.db(), &leases, &stop);
    let starter = ServiceStarter {
        auth: &auth,
        inventory: &supervisor.inventory,
        leases: &leases,
        backends: &supervisor.registry,
        clock: &clock,
        stop: &stop,
    };
    let readiness = Arc::new(Readiness::default());
    let db = auth.audit.db().history(store.expose_secret()).await?;
    let (history, recording) = starter.history(db.clone(), setup.history);
    let (notifier, delivering) = starter
        .notifier(&setup.notify, store.expose_secret(), &home)
        .await?;
    let (unlocks, alerts) = starter.unlocks_and_alerts(db, &notifier).await?;
    let sources = ChartSources::new(&history, &leases, (&unlocks, &alerts), &clock);
    let console = starter.console(sources);
    let chain_verifier = starter.chain_verifier();
    let reloader = Reloader::new(supervisor.clone(), auth.audit.clone(), auth.oidc.clone());
    let state = AppState::new(Services {
        auth: Arc::new(auth),
        console,
        unlock_searches: Searches::default(),
        inventory: supervisor.inventory.clone(),
        backends: supervisor.registry.clone(),
        history,
        leases: leases.clone(),
        unlocks,
        notifier,
        alerts,
        chain_verifier,
        clock: clock.clone(),
        readiness: readiness.clone(),
        stop: stop.clone(),
    });
    let service = WithDirectLeases::new(state.clone(), http::router(state.clone()));
    let listener = limited(listener, tls, &access, &clock);
    let shutdown = ShutdownSequence::new((recording, delivering), &leases, &readiness, stop);
    let task = shutdown.serve(listener, service);
    Ok(Serving {
        address,
        home,
        state,
        reloader: Arc::new(reloader),
        task,
    })
}

/// Dependencies of the services.
struct ServiceStarter<'a> {
    auth: &'a Authenticator,
    inventory: &'a Arc<Inventory>,
    leases: &'a Arc<LeaseService>,
    /// The configured backends, and the lease service.
    backends: &'a Arc<BackendRegistry>,
    clock: &'a Clock,
    stop: &'a CancellationToken,
}

impl ServiceStarter<'_> {
    fn history(&self, db: Db, config: HistoryConfig) -> (Arc<History>, Recording) {
        let (clock, stop) = (self.clock.clone(), self.stop.clone());
        History::start(db, self.inventory, self.leases, config, clock, stop)
    }

    fn console(&self, sources: ChartSources) -> ConsoleFor {
        let (inventory, backends) = (self.inventory.clone(), self.backends.clone());
        let console = ServerConsole::new(inventory, backends, self.clock.clone());
        ConsoleFor::caller(console.remembering(sources))
    }

    fn chain_verifier(&self) -> Arc<ChainVerifier> {
        ChainVerifier::start(self.auth.audit.clone(), self.clock.clone(), self.stop.clone())
    }

    async fn notifier(
        &self,
        config: &NotifyConfig,
        store: &str,
        home: &str,
    ) -> Result<(Arc<Notifier>, Delivering), sqlx::Error> {
        let (audit, clock) = (self.auth.audit.clone(), self.clock.clone());
        let vault = secret_keys::open(audit.db(), store, config).await?;
        let (notifier, delivering) = Notifier::start(audit, vault, config, home, clock, self.stop.clone());
        self.auth.identity.wake_outbox(notifier.outbox());
        Ok((notifier, delivering))
    }

    async fn unlocks_and_alerts(
        &self,
        history: Db,
        notifier: &Arc<Notifier>,
    ) -> Result<(Arc<Unlocks>, Arc<Alerts>), sqlx::Error> {
        let unlocks = self.unlocks(notifier).await?;
        Ok((unlocks, Box::pin(self.alerts(history, notifier)).await?))
    }

    async fn unlocks(&self, notifier: &Arc<Notifier>) -> Result<Arc<Unlocks>, sqlx::Error> {
        Unlocks::start(
            self.auth.audit.clone(),
            self.auth.identity.clone(),
            notifier.clone(),
            self.inventory.clone(),
            self.backends.clone(),
            self.clock.clone(),
            self.stop.clone(),
        )
        .await
    }

    async fn alerts(&self, history: Db, notifier: &Arc<Notifier>) -> Result<Arc<Alerts>, sqlx::Error> {
        observable_gauges::evaluation(&self.auth.evaluation);
        Alerts::start(AlertDeps {
            audit: self.auth.audit.clone(),
            history,
            inventory: self.inventory.clone(),
            leases: self.leases.clone(),
            notices: notifier.clone(),
            backends: self.backends.clone(),
            evaluation: self.auth.evaluation.clone(),
            clock: self.clock.clone(),
            stop: self.stop.clone(),
        })
        .await
    }
}

async fn bind(listen: SocketAddr, access: &AccessConfig) -> Result<(TcpListener, SocketAddr), ServeError> {
    if let Some(refusal) = access.refusal(listen) {
        return Err(ServeError::PlainHttp(refusal));
    }
    let failed = |source| ServeError::Listen {
        address: listen,
        source,
    };
    let listener = TcpListener::bind(listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

fn limited(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    access: &AccessConfig,
    clock: &Clock,
) -> Listener {
    Listener {
        listener,
        tls,
        limits: Limits::from_process(),
        // Local programs and proxies, each with many clients.
        exempt: vec![Network::LOOPBACK_V4, Network::LOOPBACK_V6],
        proxies: access.proxies.clone(),
        is_secure: access.is_secure,
        clock: clock.clone(),
    }
}

/// Public URL of the console, without a trailing slash.
pub fn home(access: &AccessConfig, mut address: SocketAddr) -> String {
    // The unspecified address cannot be part of a link.
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    let public_url = access.public_url.as_ref().map(ToString::to_string);
    let scheme = if access.is_secure { "https" } else { "http" };
    let home = public_url.unwrap_or_else(|| format!("{scheme}://{address}"));
    home.trim_end_matches('/').to_owned()
}

/// The server's certificate, if configured, reloaded until `stop`.
fn open_tls(access: &AccessConfig, stop: &CancellationToken) -> Result<Option<TlsAcceptor>, ServeError> {
    let Some(files) = &access.tls else {
        return Ok(None);
    };
    let certificate = Certificate::load(files)?;
    let reloaded = certificate.clone();
    tasks::spawn_supervised("certificate", stop.clone(), move || {
        let reloaded = reloaded.clone();
        async move { reloaded.reload_regularly().await }
    });
    Ok(Some(certificate.acceptor()?))
}

async fn open_leases(
    store: &SecretString,
    mut config: LeaseConfig,
    clock: &Clock,
    stop: &CancellationToken,
) -> Result<Arc<LeaseService>, ServeError> {
    installation::complete(store.expose_secret(), &mut config).await?;
    let opening = LeaseService::open(store.expose_secret(), config, clock.clone(), stop.clone());
    Ok(Box::pin(opening).await?)
}

async fn open_authenticator(
    store: &SecretString,
    (access, demo): (&AccessConfig, Option<DemoConsole>),
    home: &str,
    clock: &Clock,
    stop: &CancellationToken,
) -> Result<Authenticator, ServeError> {
    let db = Db::open(store.expose_secret()).await?;
    let audit = Audit::new(
        db.clone(),
        clock.clone(),
        ChainCheckpoints::new(access.audit_checkpoint_file.clone()),
    );
    audit.write_counted_refusals(stop.clone());
    let identity = Identity::start(db, audit.clone(), clock.clone(), stop.clone()).await?;
    let oidc = match &access.oidc {
        Some(config) => Some(Arc::new(Oidc::new(identity.clone(), config.clone(), home)?)),
        None => None,
    };
    Ok(Authenticator {
        identity,
        audit,
        proxies: Proxies::new(&access.proxies),
        hosts: Hosts::new(access.public_url.as_ref(), &access.allowed_hosts),
        streams: Streams::default(),
        is_secure: access.is_secure,
        oidc,
        home: home.into(),
        evaluation: Arc::new(EvaluatorMonitor::new(clock.clone())),
        demo: demo.map(Arc::new),
    })
}

impl Deref for Serving {
    type Target = Services;

    fn deref(&self) -> &Services {
        &self.state
    }
}

impl Serving {
    pub fn identity(&self) -> &Arc<Identity> {
        &self.auth.identity
    }

    /// Resolves when the server has stopped and drained. Returns the reason if it stopped by itself.
    pub async fn ended(self) -> Option<String> {
        // A panic of the task was logged by the supervisor.
        let _ended = self.task.await;
        self.state.readiness.failure()
    }
}
