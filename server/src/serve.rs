//! Puts the server together: adapters, inventory, observers, console, routes; and takes it down in order.

pub mod doors;
mod metered;
pub mod reload;
mod renewed;
mod taking_down;
mod watched;
mod watching;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use self::doors::Doors;
use self::doors::limits::Limits;
use self::doors::tls::{Certificate, TlsError};
use self::reload::Reloader;
use self::taking_down::Ending;
use self::watched::Watched;
use self::watching::Watching;
use crate::alerts::{Alerts, Evaluation, Parts};
use crate::audit::{Audit, Heads, Keeper};
use crate::backends::Roster;
use crate::clock::Clock;
use crate::config::access::Refusal;
use crate::config::{AccessConfig, BackendConfig, HistoryConfig, Network, NotifyConfig};
use crate::console::{ServerConsole, Sources};
use crate::db::{Db, DbError};
use crate::history::{History, Recording};
use crate::http::access::{Gate, Hosts, Proxies, Streams};
use crate::http::{self, AppState, ConsoleFor, Desk, Settings};
use crate::identity::{Identity, Oidc, OidcSetupError};
use crate::inventory::Inventory;
use crate::lease::{LeaseConfig, LeaseOpenError, LeaseService};
use crate::notify::{Delivering, Notifier, keys};
use crate::shutdown::Readiness;
use crate::tasks;
use crate::unlock::Unlocks;

/// What to serve, and where.
pub struct Setup {
    pub listen: SocketAddr,
    /// `sqlite:path` or `postgres://…`: where the lease service keeps its leases.
    pub store: SecretString,
    pub lease: LeaseConfig,
    pub backends: Vec<BackendConfig>,
    pub access: AccessConfig,
    pub history: HistoryConfig,
    pub notify: NotifyConfig,
    pub clock: Clock,
    /// Cancel it to stop.
    pub stop: CancellationToken,
}

/// A server that runs until its token is cancelled.
pub struct Serving {
    pub address: SocketAddr,
    /// Where people reach it, without a slash at its end.
    pub home: String,
    pub inventory: Arc<Inventory>,
    pub leases: Arc<LeaseService>,
    pub clock: Clock,
    pub identity: Arc<Identity>,
    pub unlocks: Arc<Unlocks>,
    pub notifier: Arc<Notifier>,
    pub alerts: Arc<Alerts>,
    pub readiness: Arc<Readiness>,
    /// For another configuration of backends while it runs.
    pub reloader: Arc<Reloader>,
    task: JoinHandle<()>,
}

#[derive(Debug, Error)]
pub enum ServeError {
    #[error("listen: {}. {}", .0.why, .0.mend)]
    InClear(Refusal),
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
    #[error("the store of people and of the audit record: {0}")]
    Console(#[from] DbError),
    #[error("cannot read people and tokens: {0}")]
    People(#[from] sqlx::Error),
}

/// Starts observing and serving; answers once the port is open.
///
/// # Errors
/// The address would be open in clear, the certificate is none, the port cannot be had, or the store would not keep the
/// lease service's promises.
pub async fn start(setup: Setup) -> Result<Serving, ServeError> {
    let Setup {
        listen,
        store,
        lease,
        backends,
        access,
        history,
        notify,
        clock,
        stop,
    } = setup;
    let (listener, address) = bind(listen, &access).await?;
    let tls = open_tls(&access, &stop)?;
    let opening = LeaseService::open(store.expose_secret(), lease, clock.clone(), stop.clone());
    let leases = Box::pin(opening).await?;
    let builtin = Watched::builtin(&leases, &store, &clock);
    let watching = Watching::start(&backends, builtin, &clock, &stop);
    metered::start(&watching.inventory, &leases, &clock);
    let home = home(&access, address);
    let gate = Box::pin(open_gate(&store, &access, &home, &clock, &stop)).await?;
    let ground = Ground {
        gate: &gate,
        inventory: &watching.inventory,
        leases: &leases,
        backends: &watching.roster,
        clock: &clock,
        stop: &stop,
    };
    let readiness = Arc::new(Readiness::default());
    let db = gate.audit.db().history(store.expose_secret()).await?;
    let (history, recording) = ground.history(db.clone(), history);
    let (notifier, delivering) = ground.notifier(&notify, store.expose_secret(), &home).await?;
    let (unlocks, alerts) = ground.acting(db, &notifier).await?;
    let sources = Sources::new(&history, &leases, (&unlocks, &alerts), &clock);
    let console = ServerConsole::new(watching.inventory.clone(), watching.roster.clone(), clock.clone());
    let console = ConsoleFor::caller(console.remembering(sources.clone()));
    let identity = gate.identity.clone();
    let (keeper, state) = (ground.keeper(), ground.state(console, &history, &readiness));
    let reloader = Arc::new(Reloader::new(
        watching.clone(),
        gate.audit.clone(),
        gate.oidc.clone(),
    ));
    let settings = Settings {
        gate,
        clock: clock.clone(),
        backends: watching.roster.clone(),
        home: home.clone(),
    };
    let desk = desk(settings, &unlocks, (&notifier, &alerts), keeper);
    let router = router(state, sources, desk);
    let doors = doors(listener, tls, &access, &clock);
    let ending = Ending::new((recording, delivering), &leases, &readiness, stop);
    let task = ending.serve(doors, router);
    Ok(Serving {
        address,
        home,
        inventory: watching.inventory.clone(),
        leases,
        clock,
        identity,
        unlocks,
        notifier,
        alerts,
        readiness,
        reloader,
        task,
    })
}

/// What the services above it stand on.
struct Ground<'a> {
    gate: &'a Gate,
    inventory: &'a Arc<Inventory>,
    leases: &'a Arc<LeaseService>,
    /// What is configured, and the lease service.
    backends: &'a Arc<Roster>,
    clock: &'a Clock,
    stop: &'a CancellationToken,
}

impl Ground<'_> {
    fn history(&self, db: Db, config: HistoryConfig) -> (Arc<History>, Recording) {
        let (clock, stop) = (self.clock.clone(), self.stop.clone());
        History::start(db, self.inventory, self.leases, config, clock, stop)
    }

    fn state(&self, console: ConsoleFor, history: &Arc<History>, readiness: &Arc<Readiness>) -> AppState {
        AppState {
            readiness: readiness.clone(),
            evaluation: self.gate.evaluation.clone(),
            console,
            inventory: self.inventory.clone(),
            history: history.clone(),
            clock: self.clock.clone(),
            stop: self.stop.clone(),
        }
    }

    fn keeper(&self) -> Arc<Keeper> {
        Keeper::start(self.gate.audit.clone(), self.clock.clone(), self.stop.clone())
    }

    async fn notifier(
        &self,
        config: &NotifyConfig,
        store: &str,
        home: &str,
    ) -> Result<(Arc<Notifier>, Delivering), sqlx::Error> {
        let (audit, clock) = (self.gate.audit.clone(), self.clock.clone());
        let vault = keys::open(audit.db(), store, config).await?;
        let (notifier, delivering) = Notifier::start(audit, vault, config, home, clock, self.stop.clone());
        self.gate.identity.wake_outbox(notifier.outbox());
        Ok((notifier, delivering))
    }

    async fn acting(
        &self,
        history: Db,
        notifier: &Arc<Notifier>,
    ) -> Result<(Arc<Unlocks>, Arc<Alerts>), sqlx::Error> {
        let unlocks = self.unlocks(notifier).await?;
        Ok((unlocks, Box::pin(self.alerts(history, notifier)).await?))
    }

    async fn unlocks(&self, notifier: &Arc<Notifier>) -> Result<Arc<Unlocks>, sqlx::Error> {
        Unlocks::start(
            self.gate.audit.clone(),
            self.gate.identity.clone(),
            notifier.clone(),
            self.inventory.clone(),
            self.backends.clone(),
            self.clock.clone(),
            self.stop.clone(),
        )
        .await
    }

    async fn alerts(&self, history: Db, notifier: &Arc<Notifier>) -> Result<Arc<Alerts>, sqlx::Error> {
        metered::evaluation(&self.gate.evaluation);
        Alerts::start(Parts {
            audit: self.gate.audit.clone(),
            history,
            inventory: self.inventory.clone(),
            leases: self.leases.clone(),
            notices: notifier.clone(),
            backends: self.backends.clone(),
            evaluation: self.gate.evaluation.clone(),
            clock: self.clock.clone(),
            stop: self.stop.clone(),
        })
        .await
    }
}

fn desk(
    settings: Settings,
    unlocks: &Arc<Unlocks>,
    (notifier, alerts): (&Arc<Notifier>, &Arc<Alerts>),
    keeper: Arc<Keeper>,
) -> Arc<Desk> {
    Arc::new(Desk {
        settings: Arc::new(settings),
        unlocks: unlocks.clone(),
        notifier: notifier.clone(),
        alerts: alerts.clone(),
        keeper,
    })
}

/// The API and the pages, behind one guard.
fn router(state: AppState, sources: Sources, desk: Arc<Desk>) -> axum::Router {
    let pages = http::pages::router(state.console.clone());
    let contention = http::contention::pages(state.clone());
    let api = http::api(state, sources.leases.clone(), desk.clone());
    let fencing = http::fencing_page::router(sources, desk.settings.clone());
    http::guarded(api.merge(pages).merge(contention).merge(fencing), desk)
}

async fn bind(listen: SocketAddr, access: &AccessConfig) -> Result<(TcpListener, SocketAddr), ServeError> {
    if let Some(refusal) = access.refusal(listen) {
        return Err(ServeError::InClear(refusal));
    }
    let failed = |source| ServeError::Listen {
        address: listen,
        source,
    };
    let listener = TcpListener::bind(listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

fn doors(listener: TcpListener, tls: Option<TlsAcceptor>, access: &AccessConfig, clock: &Clock) -> Doors {
    Doors {
        listener,
        tls,
        limits: Limits::of_process(),
        // Programs of this machine and local proxies come from there, many clients each.
        exempt: vec![Network::LOOPBACK_V4, Network::LOOPBACK_V6],
        proxies: access.proxies.clone(),
        is_secure: access.is_secure,
        clock: clock.clone(),
    }
}

/// Where people reach the console, without a slash at the end.
fn home(access: &AccessConfig, mut address: SocketAddr) -> String {
    // "Every address" is none that a link could lead to.
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    let public_url = access.public_url.as_ref().map(ToString::to_string);
    let scheme = if access.is_secure { "https" } else { "http" };
    let home = public_url.unwrap_or_else(|| format!("{scheme}://{address}"));
    home.trim_end_matches('/').to_owned()
}

/// Our own certificate, where there is one, kept fresh until `stop`.
fn open_tls(access: &AccessConfig, stop: &CancellationToken) -> Result<Option<TlsAcceptor>, ServeError> {
    let Some(files) = &access.tls else {
        return Ok(None);
    };
    let certificate = Certificate::load(files)?;
    let keeper = certificate.clone();
    tasks::keep("certificate", stop.clone(), move || {
        let keeper = keeper.clone();
        async move { keeper.keep_fresh().await }
    });
    Ok(Some(certificate.acceptor()?))
}

async fn open_gate(
    store: &SecretString,
    access: &AccessConfig,
    home: &str,
    clock: &Clock,
    stop: &CancellationToken,
) -> Result<Gate, ServeError> {
    let db = Db::open(store.expose_secret()).await?;
    let audit = Audit::new(
        db.clone(),
        clock.clone(),
        Heads::new(access.audit_heads_file.clone()),
    );
    audit.write_anonymous_counts(stop.clone());
    let identity = Identity::start(db, audit.clone(), clock.clone(), stop.clone()).await?;
    let oidc = match &access.oidc {
        Some(config) => Some(Arc::new(Oidc::new(identity.clone(), config.clone(), home)?)),
        None => None,
    };
    Ok(Gate {
        identity,
        audit,
        proxies: Proxies::new(&access.proxies),
        hosts: Hosts::new(access.public_url.as_ref(), &access.allowed_hosts),
        streams: Streams::default(),
        is_secure: access.is_secure,
        oidc,
        home: home.into(),
        evaluation: Arc::new(Evaluation::new(clock.clone())),
    })
}

impl Serving {
    /// Until it was stopped and has drained. Why it ended by itself; none when it was asked to.
    pub async fn ended(self) -> Option<String> {
        // A panic of the task was logged where it happened.
        let _ended = self.task.await;
        self.readiness.failure()
    }
}
