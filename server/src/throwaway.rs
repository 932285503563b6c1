//! Real lock servers that exist for one demo or one test: Postgres, Redis, etcd, ZooKeeper, Alertmanager, Prometheus and
//! VictoriaMetrics, each on free loopback ports, with its data in a temporary folder, stopped and removed when its value is dropped.
//!
//! Owns: finding the programs, dropping root, ports, readiness, faults (stop, kill, pause, restart), and leaving
//! nothing behind. Deliberately not here: schemas, users and workload (callers do that with their own clients), and
//! the machine's own servers, which are never touched.
//!
//! **What is left behind: nothing**, neither process, folder nor shared memory: not on a normal end, on a panic, on
//! `std::process::exit`, on Ctrl-C or any other signal, `kill -9` included, not while a server is paused or still
//! starting, and not by a server kept in a `static`, which Rust never drops. Dropping the value does it in order; for
//! the rest, a small shell waits beside each server (`folder.rs`), reads a pipe from us, and cleans up when it closes.
//! Not covered: the shell killed by `kill -9` together with us (an end of the whole container or cgroup: the processes
//! are gone then, the folder stays), and `kill -9` in the microseconds between a server's fork and the shell's notice.

mod account;
mod address;
mod alertmanager;
mod etcd;
mod folder;
mod plan;
mod ports;
mod postgres;
mod proc_table;
mod process;
mod programs;
mod prometheus;
mod redis;
mod server;
mod tls;
mod victoria;
mod zookeeper;

pub use alertmanager::{Alertmanager, AlertmanagerOptions};
pub use etcd::{Etcd, EtcdOptions};
pub use ports::free_port;
pub use postgres::{Postgres, PostgresOptions};
pub use programs::MissingServer;
pub use prometheus::{Prometheus, PrometheusOptions, promtool};
pub use redis::{Redis, RedisOptions};
pub use server::Server;
pub use tls::Tls;
pub use victoria::Victoria;
pub use zookeeper::{Zookeeper, ZookeeperOptions};

use std::{io, path::Path};

/// Starts throwaway servers. Call it on a tokio runtime whose clock is not paused: readiness has a real deadline.
#[derive(Debug)]
pub struct Throwaway;

impl Throwaway {
    /// Starts a Postgres on a free port and returns once it answers a query.
    ///
    /// # Errors
    /// See [`StartError`]; a port taken meanwhile is retried with another one.
    pub async fn postgres(options: PostgresOptions) -> Result<Postgres, StartError> {
        Postgres::start(options).await
    }

    /// Starts a Redis on a free port and returns once it answers `PING`.
    ///
    /// # Errors
    /// See [`StartError`]; a port taken meanwhile is retried with another one.
    pub async fn redis(options: RedisOptions) -> Result<Redis, StartError> {
        Redis::start(options).await
    }

    /// Starts an etcd of one node on free ports and returns once it reports itself healthy.
    ///
    /// # Errors
    /// See [`StartError`]; a port taken meanwhile is retried with another one.
    pub async fn etcd(options: EtcdOptions) -> Result<Etcd, StartError> {
        Etcd::start(options).await
    }

    /// Starts a ZooKeeper on a free port and returns once it says that it is well.
    ///
    /// # Errors
    /// See [`StartError`]; a port taken meanwhile is retried with another one.
    pub async fn zookeeper(options: ZookeeperOptions) -> Result<Zookeeper, StartError> {
        Zookeeper::start(options).await
    }

    /// Starts an Alertmanager on a free port and returns once it says that it is ready.
    ///
    /// # Errors
    /// See [`StartError`]; a port taken meanwhile is retried with another one.
    pub async fn alertmanager(options: AlertmanagerOptions) -> Result<Alertmanager, StartError> {
        Alertmanager::start(options).await
    }

    /// Starts a Prometheus on a free port and returns once it says that it is ready.
    ///
    /// # Errors
    /// See [`StartError`]; a port taken meanwhile is retried with another one.
    pub async fn prometheus(options: PrometheusOptions) -> Result<Prometheus, StartError> {
        Prometheus::start(options).await
    }

    /// Starts a VictoriaMetrics on a free port and returns once it says that it is ready.
    ///
    /// # Errors
    /// See [`StartError`]; a port taken meanwhile is retried with another one.
    pub async fn victoria() -> Result<Victoria, StartError> {
        Victoria::start().await
    }
}

/// A private temporary folder that goes the way of the servers' folders: removed on drop, and when we die.
#[derive(Debug)]
pub struct ThrowawayFolder(folder::Folder);

impl ThrowawayFolder {
    /// Owned by the account that runs us, closed to others.
    ///
    /// # Errors
    /// When it cannot be made, or its guard cannot be started.
    pub fn create(name: &str) -> io::Result<Self> {
        folder::Folder::create(name, account::Account::ourselves(), "KILL").map(Self)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Which process group works in here, by the id of its leader: it is ended when we die, however that is.
    pub fn worked_in_by(&self, leader: u32) {
        self.0.guard_pid(leader);
    }
}

/// Why a throwaway server did not start. The text is meant for the person at the terminal.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Missing(#[from] MissingServer),
    #[error(
        "{what} will not run as root, and this machine has neither a user `postgres` nor `nobody` to run it as"
    )]
    NoAccount { what: &'static str },
    #[error("could not {doing} for a throwaway {what}: {source}")]
    Io {
        what: &'static str,
        doing: &'static str,
        source: io::Error,
    },
    #[error("initdb failed: {output}")]
    Initdb { output: String },
    #[error("{what} found its port taken by another program; its log ends:\n{log}")]
    PortTaken { what: &'static str, log: String },
    #[error("{what} ended while starting ({status}); its log ends:\n{log}")]
    Exited {
        what: &'static str,
        status: String,
        log: String,
    },
    #[error("{what} was not ready after {waited_s} s ({last}); its log ends:\n{log}")]
    NotReady {
        what: &'static str,
        waited_s: u64,
        last: String,
        log: String,
    },
}
