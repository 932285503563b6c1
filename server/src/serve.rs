//! Puts the server together: adapters, inventory, observers, console, routes; and takes it down in order.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use app::console::SharedConsole;
use thiserror::Error;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::backends::Backend;
use crate::backends::connect::connect;
use crate::clock::Clock;
use crate::config::BackendConfig;
use crate::console::ServerConsole;
use crate::http::{self, AppState};
use crate::inventory::{BackendInfo, Inventory};
use crate::observer::{self, Pace};
use crate::tasks;

/// Open requests get this long when the server stops; event streams end at once.
const DRAIN_MAX: Duration = Duration::from_secs(5);

/// What to serve, and where.
pub struct Setup {
    pub listen: SocketAddr,
    pub backends: Vec<BackendConfig>,
    pub clock: Clock,
    /// Cancel it to stop.
    pub stop: CancellationToken,
}

/// A server that runs until its token is cancelled.
pub struct Serving {
    pub address: SocketAddr,
    pub inventory: Arc<Inventory>,
    pub clock: Clock,
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
}

/// Starts observing and serving; answers once the port is open.
///
/// # Errors
/// The address is not loopback, or the port cannot be had.
pub async fn start(setup: Setup) -> Result<Serving, ServeError> {
    let Setup {
        listen,
        backends,
        clock,
        stop,
    } = setup;
    if !listen.ip().is_loopback() {
        return Err(ServeError::NotLoopback(listen));
    }
    let listened = tokio::net::TcpListener::bind(listen).await;
    let listener = listened.map_err(|source| ServeError::Listen {
        address: listen,
        source,
    })?;
    let address = listener.local_addr().map_err(|source| ServeError::Listen {
        address: listen,
        source,
    })?;
    let (inventory, adapters) = observe(&backends, &clock, &stop);
    let console: SharedConsole = Arc::new(ServerConsole::new(inventory.clone(), adapters, clock.clone()));
    let state = AppState {
        console: console.clone(),
        inventory: inventory.clone(),
        clock: clock.clone(),
        stop: stop.clone(),
    };
    let router = http::with_layers(http::api(state).merge(http::pages::router(console)));
    let task = tasks::spawn("http", CancellationToken::new(), run(listener, router, stop));
    Ok(Serving {
        address,
        inventory,
        clock,
        task,
    })
}

impl Serving {
    /// Until it was stopped and has drained.
    pub async fn ended(self) {
        // A panic of the task was logged where it happened.
        let _ended = self.task.await;
    }
}

async fn run(listener: tokio::net::TcpListener, router: axum::Router, stop: CancellationToken) {
    let asked = stop.clone();
    let serving =
        axum::serve(listener, router).with_graceful_shutdown(async move { asked.cancelled().await });
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

type Adapters = HashMap<domain::names::BackendName, Arc<dyn Backend>>;

fn observe(
    backends: &[BackendConfig],
    clock: &Clock,
    stop: &CancellationToken,
) -> (Arc<Inventory>, Adapters) {
    let adapters: Vec<(&BackendConfig, Arc<dyn Backend>)> = backends
        .iter()
        .map(|config| (config, connect(config, clock)))
        .collect();
    let inventory = Inventory::new(
        adapters
            .iter()
            .map(|(config, adapter)| info(config, &**adapter))
            .collect(),
    );
    for (config, adapter) in &adapters {
        let describe = {
            let adapter = adapter.clone();
            move |source: &domain::names::Source| (adapter.safety(source), adapter.grain_ms(source))
        };
        let pace = Pace {
            poll: config.poll,
            timeout: config.timeout,
            budget: config.budget,
        };
        if let Some(feed) = inventory.feed(&config.name, clock.now(), describe) {
            observer::start(Arc::clone(adapter), feed, pace, clock.clone(), stop);
        }
    }
    let adapters = adapters
        .into_iter()
        .map(|(config, adapter)| (config.name.clone(), adapter))
        .collect();
    (inventory, adapters)
}

fn info(config: &BackendConfig, adapter: &dyn Backend) -> BackendInfo {
    BackendInfo {
        name: config.name.clone(),
        kind: adapter.kind(),
        address: adapter.address(),
        poll_ms: i64::try_from(config.poll.as_millis()).unwrap_or(i64::MAX),
        capabilities: adapter.capabilities(),
    }
}
