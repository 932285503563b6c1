//! Puts the server together: adapters, inventory, observers, console, routes; and takes it down in order.

mod watched;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::watched::Watched;
use crate::audit::{Audit, Heads};
use crate::clock::Clock;
use crate::config::{AccessConfig, BackendConfig};
use crate::console::ServerConsole;
use crate::db::{Db, DbError};
use crate::http::access::{Gate, Proxies, Streams};
use crate::http::{self, AppState, ConsoleFor, Settings};
use crate::identity::Identity;
use crate::inventory::Inventory;
use crate::lease::{LeaseConfig, LeaseOpenError, LeaseService};
use crate::tasks;
use crate::unlock::Unlocks;

/// Open requests get this long when the server stops; event streams end at once.
const DRAIN_MAX: Duration = Duration::from_secs(5);

/// What to serve, and where.
pub struct Setup {
    pub listen: SocketAddr,
    /// `sqlite:path` or `postgres://…`: where the lease service keeps its leases.
    pub store: SecretString,
    pub lease: LeaseConfig,
    pub backends: Vec<BackendConfig>,
    pub access: AccessConfig,
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
    task: JoinHandle<()>,
}

#[derive(Debug, Error)]
pub enum ServeError {
    #[error(
        "Leasehold listens on loopback only until people and tokens exist, and {0} is not a loopback address; \
         set `listen` to 127.0.0.1 or [::1] and reach it through an SSH tunnel"
    )]
    NotLoopback(SocketAddr),
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
/// The address is not loopback, the port cannot be had, or the store would not keep the lease service's promises.
pub async fn start(setup: Setup) -> Result<Serving, ServeError> {
    let Setup {
        listen,
        store,
        lease,
        backends,
        access,
        clock,
        stop,
    } = setup;
    let (listener, address) = bind(listen).await?;
    let leases = LeaseService::open(store.expose_secret(), lease, clock.clone(), stop.clone()).await?;
    let mut watched: Vec<Watched> = backends
        .iter()
        .map(|config| Watched::configured(config, &clock))
        .collect();
    watched.push(Watched::builtin(&leases, &store, &clock));
    let inventory_names = watched.iter().map(|one| one.name().to_string()).collect();
    let (inventory, adapters) = watched::observe(watched, &clock, &stop);
    let console = ServerConsole::new(inventory.clone(), adapters.clone(), clock.clone());
    let gate = open_gate(&store, &access, &clock, &stop).await?;
    let unlocks = Unlocks::start(
        gate.audit.clone(),
        gate.identity.clone(),
        inventory.clone(),
        adapters,
        clock.clone(),
        stop.clone(),
    )
    .await?;
    let console = ConsoleFor::caller(console);
    let state = AppState {
        console: console.clone(),
        inventory: inventory.clone(),
        clock: clock.clone(),
        stop: stop.clone(),
    };
    let identity = gate.identity.clone();
    let home = home(&access, address);
    let settings = Arc::new(Settings {
        gate,
        clock: clock.clone(),
        backends: inventory_names,
        home: home.clone(),
    });
    let api = http::api(state, leases.clone(), unlocks.clone(), settings.clone());
    let router = http::guarded(api.merge(http::pages::router(console)), settings);
    let closing = leases.clone();
    let task = tasks::spawn("http", CancellationToken::new(), async move {
        run(listener, router, stop).await;
        // Nobody asks any more: what is in flight is committed, then the store is closed.
        closing.close().await;
    });
    Ok(Serving {
        address,
        home,
        inventory,
        leases,
        clock,
        identity,
        unlocks,
        task,
    })
}

async fn bind(listen: SocketAddr) -> Result<(TcpListener, SocketAddr), ServeError> {
    if !listen.ip().is_loopback() {
        return Err(ServeError::NotLoopback(listen));
    }
    let failed = |source| ServeError::Listen {
        address: listen,
        source,
    };
    let listener = TcpListener::bind(listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// Where people reach the console, without a slash at the end.
fn home(access: &AccessConfig, address: SocketAddr) -> String {
    let public_url = access.public_url.as_ref().map(ToString::to_string);
    let home = public_url.unwrap_or_else(|| format!("http://{address}"));
    home.trim_end_matches('/').to_owned()
}

async fn open_gate(
    store: &SecretString,
    access: &AccessConfig,
    clock: &Clock,
    stop: &CancellationToken,
) -> Result<Gate, ServeError> {
    let db = Db::open(store.expose_secret()).await?;
    let audit = Audit::new(
        db.clone(),
        clock.clone(),
        Heads::new(access.audit_heads_file.clone()),
    );
    let identity = Identity::start(db, audit.clone(), clock.clone(), stop.clone()).await?;
    Ok(Gate {
        identity,
        audit,
        proxies: Proxies::new(&access.trusted_proxies),
        streams: Streams::default(),
        is_secure: access.is_secure,
    })
}

impl Serving {
    /// Until it was stopped and has drained.
    pub async fn ended(self) {
        // A panic of the task was logged where it happened.
        let _ended = self.task.await;
    }
}

async fn run(listener: TcpListener, router: axum::Router, stop: CancellationToken) {
    let asked = stop.clone();
    let serving = axum::serve(
        listener,
        router.into_make_service_with_connect_info::<SocketAddr>(),
    )
    .with_graceful_shutdown(async move { asked.cancelled().await });
    let late = async {
        stop.cancelled().await;
        tokio::time::sleep(DRAIN_MAX).await;
    };
    tokio::select! {
        ended = serving => {
            if let Err(error) = ended {
                tracing::error!("the listener failed: {error}");
            }
        }
        () = late => tracing::warn!("some requests did not end in time and were cut"),
    }
}
