//! How to run one kind of server, and how to probe it.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use rustix::process::Signal;
use sqlx::postgres::PgConnectOptions;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::{alertmanager, consul, etcd, postgres, prometheus, redis, zookeeper};

const PROBE_DEADLINE: Duration = Duration::from_secs(2);

/// How to run one server.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
    /// Log line once *this* process listens: a response on the port alone may come from another program.
    pub(super) marker: &'static str,
    pub(super) probe: Probe,
    /// Signal for an orderly stop.
    pub(super) stop: Signal,
    /// Signal for an immediate end on drop.
    pub(super) end: Signal,
}

/// How to probe a server.
#[derive(Debug, Clone)]
pub(super) enum Probe {
    Postgres(Box<PgConnectOptions>),
    Redis(SocketAddr),
    Etcd(SocketAddr),
    Zookeeper(SocketAddr),
    Consul(consul::ConsulProbe),
    Alertmanager(SocketAddr),
    Prometheus(SocketAddr),
}

impl Probe {
    pub(super) async fn probe(&self) -> Result<(), String> {
        let answer = async {
            match self {
                Self::Postgres(options) => postgres::check_ready(options).await,
                Self::Redis(address) => redis::check_ready(*address).await,
                Self::Etcd(address) => etcd::check_ready(*address).await,
                Self::Zookeeper(address) => zookeeper::check_ready(*address).await,
                Self::Consul(probe) => probe.check_ready().await,
                Self::Alertmanager(address) => alertmanager::check_ready(*address).await,
                Self::Prometheus(address) => prometheus::check_ready(*address).await,
            }
        };
        timeout(PROBE_DEADLINE, answer)
            .await
            .unwrap_or_else(|_| Err("no answer".to_owned()))
    }
}

/// The complete response to one request until the server closes the connection.
pub(super) async fn send_request(address: SocketAddr, request: &[u8]) -> Result<String, String> {
    let answer = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(request).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    };
    answer.await.map_err(|error: std::io::Error| error.to_string())
}
