//! Real lock servers that exist for one demo or one test: Postgres, PgBouncer, Redis, etcd, ZooKeeper, Consul, Alertmanager,
//! Prometheus and VictoriaMetrics, each on free loopback ports, with its data in a temporary folder, stopped and removed when its value is dropped.
//!
//! Owns: finding the programs, dropping root, ports, readiness, faults (stop, kill, pause, restart), and leaving
//! nothing behind. Deliberately not here: schemas, users and workload (callers do that with their own clients), and
//! the machine's own servers, which are never touched.
//!
//! **Nothing is left behind**, neither process, folder nor shared memory: not after a normal end, a panic,
//! `std::process::exit`, Ctrl-C or any other signal including `kill -9`, not while a server is paused or starting,
//! and not by a server in a `static`, which Rust never drops. Dropping the value cleans up in order; for the other
//! cases a small shell next to each server (`temp_dir.rs`) reads a pipe from this process and cleans up when it
//! closes. Not covered: the shell killed together with this process (end of a container or cgroup: the processes are
//! gone, the folder stays), and `kill -9` in the microseconds between a server's fork and the shell's notification.

mod address;
mod alertmanager;
mod binaries;
mod certs;
mod consul;
mod etcd;
mod eventually;
pub mod leftovers;
mod pgbouncer;
mod ports;
mod postgres;
mod proc_table;
mod process;
mod prometheus;
mod redis;
mod run_as;
mod server;
mod server_spec;
mod temp_dir;
mod tls;
mod victoria_metrics;
mod zookeeper;

pub use alertmanager::{Alertmanager, AlertmanagerOptions};
pub use binaries::{MissingServer, tool_cache};
pub use certs::Certs;
pub use consul::{Consul, ConsulOptions};
pub use etcd::{Etcd, EtcdCluster, EtcdOptions, PeerLinks};
pub use eventually::{eventually, hangs, within};
pub use pgbouncer::{Pgbouncer, PgbouncerOptions};
pub use ports::free_port;
pub use postgres::{Postgres, PostgresOptions};
pub use proc_table::descendants;
pub use prometheus::{Prometheus, PrometheusOptions, promtool};
pub use redis::{Redis, RedisCluster, RedisOptions, RedisSentinel, SentinelOptions};
pub use server::Server;
pub use tls::Tls;
pub use victoria_metrics::Victoria;
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

    /// Starts a PgBouncer on a free port and returns once it answers a query.
    ///
    /// # Errors
    /// See [`StartError`]; a port taken meanwhile is retried with another one.
    pub async fn pgbouncer(options: PgbouncerOptions) -> Result<Pgbouncer, StartError> {
        Pgbouncer::start(options).await
    }

    /// Starts a Redis on a free port and returns once it answers `PING`.
    ///
    /// # Errors
    /// See [`StartError`]; a port taken meanwhile is retried with another one.
    pub async fn redis(options: RedisOptions) -> Result<Redis, StartError> {
        Redis::start(options).await
    }

    /// Starts a Redis Cluster of this many masters and returns once each of them reports a healthy cluster.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn redis_cluster(masters: usize, options: RedisOptions) -> Result<RedisCluster, StartError> {
        RedisCluster::start(masters, options).await
    }

    /// Starts a Sentinel that monitors a master.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn redis_sentinel(options: SentinelOptions) -> Result<RedisSentinel, StartError> {
        RedisSentinel::start(options).await
    }

    /// Starts an etcd of one node on free ports and returns once it reports itself healthy.
    ///
    /// # Errors
    /// See [`StartError`]; a port taken meanwhile is retried with another one.
    pub async fn etcd(options: EtcdOptions) -> Result<Etcd, StartError> {
        Etcd::start(options).await
    }

    /// Starts an etcd cluster of this many members and returns once each of them reports itself healthy.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn etcd_cluster(members: usize, options: EtcdOptions) -> Result<EtcdCluster, StartError> {
        EtcdCluster::start(members, options).await
    }

    /// Starts a ZooKeeper on a free port and returns once it answers `srvr`.
    ///
    /// # Errors
    /// See [`StartError`]; a port taken meanwhile is retried with another one.
    pub async fn zookeeper(options: ZookeeperOptions) -> Result<Zookeeper, StartError> {
        Zookeeper::start(options).await
    }

    /// Starts a Consul of one server on free ports and returns once it has a leader.
    ///
    /// # Errors
    /// See [`StartError`]; a port taken meanwhile is retried with another one.
    pub async fn consul(options: ConsulOptions) -> Result<Consul, StartError> {
        Consul::start(options).await
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

/// A private temporary folder, removed on drop and when this process dies.
#[derive(Debug)]
pub struct ThrowawayFolder(temp_dir::Folder);

impl ThrowawayFolder {
    /// Owned by the current account, closed to others.
    ///
    /// # Errors
    /// It cannot be created, or its guard cannot be started.
    pub fn create(name: &str) -> io::Result<Self> {
        temp_dir::Folder::create(name, run_as::Account::ourselves(), "KILL").map(Self)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Sets the process group that works in this folder, by the id of its leader: it is ended when this process
    /// dies.
    pub fn worked_in_by(&self, leader: u32) {
        self.0.guard_pid(leader);
    }
}

/// Why a throwaway server did not start; shown to the user on the terminal.
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
    #[error("{program} failed: {output}")]
    Cluster { program: String, output: String },
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
