//! `leasehold demo`: real servers for the duration of the demo, real clients that hold locks in them in every state
//! that the console can show, and the configuration of the console.
//!
//! Owns servers, schemas, accounts, workload, and a folder for the console's files. Not the console, which runs on
//! [`Demo::backends`] as on any configuration, with read-only accounts.

mod builtin;
mod consul;
mod deadlock;
mod etcd;
mod fault;
mod leases;
mod names;
mod postgres;
mod redis;
mod rng;
mod rules;
mod scenarios;
mod servers;
mod setup;
mod simulated_day;
mod webhook;
mod worker;
mod worker_pool;
mod zookeeper;

use std::io;
use std::path::Path;
use std::time::Duration;

use domain::alerts::Draft;
use domain::history::simulated_past::SimulatedPast;
use domain::names::NameError;
use domain::waits::identity::IdentityRule;
use tokio_util::sync::CancellationToken;

use self::servers::Servers;
use self::worker_pool::WorkerPool;
use config::BackendConfig;
use testkit::{MissingServer, StartError, ThrowawayFolder};

pub use webhook::Webhook;

/// Length of the simulated past.
const PAST: Duration = Duration::from_secs(24 * 3_600);

/// A running demo. Also stops when dropped without [`end`](Self::end), and leaves nothing behind.
pub struct Demo {
    /// Before the servers, so that it is dropped first.
    workers: WorkerPool,
    backends: Vec<BackendConfig>,
    missing: Vec<MissingServer>,
    folder: ThrowawayFolder,
    servers: Servers,
}

/// What the tour shows: locks of the lease service, and a rule of [`Demo::rules`].
#[derive(Debug, Clone, Copy)]
pub struct TourTargets {
    /// Text that locks of several backends contain.
    pub search: &'static str,
    /// A lock with waiters.
    pub queue: &'static str,
    /// Held and renewed for the whole demo.
    pub held: &'static str,
    /// The id of a rule that fires.
    pub rule: &'static str,
}

/// Why the demo did not start; shown to the user on the terminal.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    #[error("{}", nothing_installed(.0))]
    NothingInstalled(Vec<MissingServer>),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("could not make a folder for the demo: {0}")]
    Folder(#[from] io::Error),
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("could not prepare {server} for the demo: {detail}")]
    Prepare { server: &'static str, detail: String },
}

fn nothing_installed(missing: &[MissingServer]) -> String {
    let mut text = "the demo needs at least one of its servers, and none is installed:".to_owned();
    for server in missing {
        text = format!("{text}\n  {server}");
    }
    text
}

/// A private folder for the console's files: its store and its log. Removed when the demo that it is given to ends.
///
/// # Errors
/// It cannot be created.
pub fn create_folder() -> Result<ThrowawayFolder, DemoError> {
    Ok(ThrowawayFolder::create("demo")?)
}

/// Starts the servers in parallel, then the workload, which runs until `stop` is cancelled or the demo ends. Returns
/// once every server answers; the first locks follow within seconds.
///
/// # Errors
/// None of the servers is installed, or an installed one does not start.
pub async fn start(folder: ThrowawayFolder, stop: CancellationToken) -> Result<Demo, DemoError> {
    let (servers, missing) = Box::pin(Servers::start()).await?;
    let mut workers = WorkerPool::new(stop.child_token());
    Box::pin(setup::start_all(&mut workers, &servers)).await?;
    Ok(Demo {
        workers,
        backends: servers.configs()?,
        missing,
        folder,
        servers,
    })
}

impl Demo {
    /// Backends of the console: `orders-db`, `redis-cache`, `cache-eu`, `payments-redlock`, `etcd-coord`, `zk-plan`, `consul-dc1`, without the missing ones.
    pub fn backends(&self) -> Vec<BackendConfig> {
        self.backends.clone()
    }

    /// The rule by which the console recognizes the workers of the deadlock, if both of their servers run.
    pub fn identity_rules(&self) -> Vec<IdentityRule> {
        let backend = |name| self.backends.iter().find(|backend| backend.name.as_str() == name);
        let backends = backend("orders-db").zip(backend("etcd-coord"));
        let rule = backends
            .and_then(|(orders, coord)| deadlock::identity_rule(orders.name.clone(), coord.name.clone()));
        rule.into_iter().collect()
    }

    /// What a console would have recorded in the last 24 h before `until` (milliseconds since 1970), thinned.
    ///
    /// # Errors
    /// A name of the demo is not valid.
    pub fn past(&self, until: i64) -> Result<SimulatedPast, NameError> {
        simulated_day::simulate(&self.backends, PAST, until)
    }

    /// Alert rules scaled for the demo, in addition to the built-in ones.
    pub fn rules() -> Vec<Draft> {
        rules::rules()
    }

    /// Locks and a rule that the tour of the console leads to. They exist even if servers are missing.
    pub const fn tour_targets() -> TourTargets {
        TourTargets {
            search: names::SEARCH,
            queue: names::QUEUE_LOCK,
            held: names::LONG_LOCK,
            rule: rules::LONG_HELD,
        }
    }

    /// Servers that are not installed, each with its install command; the demo runs without them.
    pub fn missing_servers(&self) -> &[MissingServer] {
        &self.missing
    }

    /// A private folder for the console's files. Removed at the end.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts workers on the lease service of the console at `base`, like `http://127.0.0.1:3000`, with a token that
    /// may hold leases.
    ///
    /// # Errors
    /// Its clients do not start.
    pub fn work_on(&mut self, base: &str, token: &str) -> Result<(), DemoError> {
        let access = builtin::Access::new(base, token).map_err(|fault| DemoError::Prepare {
            server: "the lease service",
            detail: fault.to_string(),
        })?;
        setup::start_on_lease_service(&mut self.workers, &access);
        Ok(())
    }

    /// Kills every server like a power cut and restarts it with its data, to test that the workload recovers.
    ///
    /// # Errors
    /// A server does not restart.
    #[doc(hidden)]
    pub async fn crash(&self) -> Result<(), StartError> {
        self.servers.crash().await
    }

    /// Stops the workload and the servers, and removes all files.
    pub async fn end(self) {
        let Self {
            workers,
            folder,
            servers,
            ..
        } = self;
        workers.end().await;
        // Blocks until the processes have ended.
        let _ = tokio::task::spawn_blocking(move || drop((servers, folder))).await;
    }
}
