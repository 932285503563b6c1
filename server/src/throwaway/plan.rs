//! How to run one kind of server and how to ask it whether it answers.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use rustix::process::Signal;
use sqlx::postgres::PgConnectOptions;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::{alertmanager, etcd, postgres, prometheus, redis, zookeeper};

const PROBE_DEADLINE: Duration = Duration::from_secs(2);

/// How to run one server.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
    /// What the log says once *this* process listens: an answer on the port alone may come from somebody else.
    pub(super) marker: &'static str,
    pub(super) probe: Probe,
    /// Ends it in good order.
    pub(super) stop: Signal,
    /// Ends it at once, when its value is dropped.
    pub(super) end: Signal,
}

/// How to ask a server whether it answers.
#[derive(Debug, Clone)]
pub(super) enum Probe {
    Postgres(Box<PgConnectOptions>),
    Redis(SocketAddr),
    Etcd(SocketAddr),
    Zookeeper(SocketAddr),
    Alertmanager(SocketAddr),
    Prometheus(SocketAddr),
}

impl Probe {
    pub(super) async fn ask(&self) -> Result<(), String> {
        let answer = async {
            match self {
                Self::Postgres(options) => postgres::answers(options).await,
                Self::Redis(address) => redis::answers(*address).await,
                Self::Etcd(address) => etcd::answers(*address).await,
                Self::Zookeeper(address) => zookeeper::answers(*address).await,
                Self::Alertmanager(address) => alertmanager::answers(*address).await,
                Self::Prometheus(address) => prometheus::answers(*address).await,
            }
        };
        timeout(PROBE_DEADLINE, answer)
            .await
            .unwrap_or_else(|_| Err("no answer".to_owned()))
    }
}

/// All that a server says to one question before it hangs up, without a client.
pub(super) async fn asked(address: SocketAddr, question: &[u8]) -> Result<String, String> {
    let answer = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(question).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    };
    answer.await.map_err(|error: std::io::Error| error.to_string())
}
