//! `leasehold demo`: real servers that live as long as the demo, real clients that hold locks in them in every way
//! that the console can show, and the configuration with which the console watches them.
//!
//! Owns: servers, schemas, accounts, workload, a folder for the console's own file. Deliberately not here: the
//! console, which runs on [`Demo::backends`] as on any configuration, with accounts that may only look.

mod builtin;
mod cast;
mod chance;
mod crew;
mod etcd;
mod fault;
mod leases;
mod names;
mod postgres;
mod redis;
mod rules;
mod servers;
mod stage;
mod webhook;
mod worker;

use std::io;
use std::path::Path;

use domain::alerts::Draft;
use domain::names::NameError;
use tokio_util::sync::CancellationToken;

use self::crew::Crew;
use self::servers::Servers;
use crate::config::BackendConfig;
use crate::throwaway::{MissingServer, StartError, ThrowawayFolder};

pub use webhook::Webhook;

/// A running demo. Dropped without [`end`](Self::end), it stops too, and leaves nothing behind either.
pub struct Demo {
    /// Before the servers, so that it is gone first.
    crew: Crew,
    backends: Vec<BackendConfig>,
    missing: Vec<MissingServer>,
    folder: ThrowawayFolder,
    servers: Servers,
}

/// Why the demo did not start. The text is meant for the person at the terminal.
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

/// Starts the servers side by side, then the workload, which runs until `stop` is cancelled or the demo ends.
/// Returns once every server answers; the first locks follow within seconds.
///
/// # Errors
/// When none of the servers is installed, or one that is does not start.
pub async fn start(stop: CancellationToken) -> Result<Demo, DemoError> {
    let folder = ThrowawayFolder::create("demo")?;
    let (servers, missing) = Box::pin(Servers::start()).await?;
    let mut crew = Crew::new(stop.child_token());
    stage::set(&mut crew, &servers).await?;
    Ok(Demo {
        crew,
        backends: servers.configs()?,
        missing,
        folder,
        servers,
    })
}

impl Demo {
    /// What the console should watch: `orders-db`, `redis-cache`, `cache-eu`, `etcd-coord`, without the missing ones.
    pub fn backends(&self) -> Vec<BackendConfig> {
        self.backends.clone()
    }

    /// Alert rules of the demo's own scale, beside the built-in ones.
    pub fn rules() -> Vec<Draft> {
        rules::rules()
    }

    /// Servers that are not installed, each with the command that installs it; the demo runs without them.
    pub fn missing(&self) -> &[MissingServer] {
        &self.missing
    }

    /// A private folder for the console's own file. Removed at the end.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Sets workers to work on the lease service of the console that runs at `base`, like `http://127.0.0.1:3000`, with a
    /// token that may hold leases.
    ///
    /// # Errors
    /// When its clients do not start.
    pub fn work_on(&mut self, base: &str, token: &str) -> Result<(), DemoError> {
        let access = builtin::Access::new(base, token).map_err(|fault| DemoError::Prepare {
            server: "the lease service",
            detail: fault.to_string(),
        })?;
        stage::service(&mut self.crew, &access);
        Ok(())
    }

    /// Kills every server as a power cut would, and starts it again with its data: what the workload lives through.
    ///
    /// # Errors
    /// When one does not come back.
    #[doc(hidden)]
    pub async fn crash(&self) -> Result<(), StartError> {
        self.servers.crash().await
    }

    /// Ends the workload, the servers, and removes all that they wrote.
    pub async fn end(self) {
        let Self {
            crew,
            folder,
            servers,
            ..
        } = self;
        crew.end().await;
        // Waits for processes to end.
        let _ = tokio::task::spawn_blocking(move || drop((servers, folder))).await;
    }
}
