//! Opens a connection: TCP, TLS or Unix socket, with bounded replies. The driver's own
//! connector has no limits.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use ::redis::aio::{AsyncStream, MultiplexedConnection};
use ::redis::{AsyncConnectionConfig, RedisConnectionInfo, RedisError};
use futures::future::select_ok;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::reply_filter::FilteredStream;
use runtime::tasks;

/// Address of a server.
#[derive(Clone)]
pub(super) enum Address {
    Tcp {
        host: String,
        port: u16,
        tls: Option<Tls>,
    },
    Unix(PathBuf),
}

/// How to verify the server, and the name that its certificate must have.
#[derive(Clone)]
pub(super) struct Tls {
    pub(super) config: Arc<ClientConfig>,
    pub(super) name: ServerName<'static>,
}

/// A connection and its driver task, which ends with the last clone.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) requests: MultiplexedConnection,
    _driver: Arc<AbortOnDropHandle<()>>,
}

/// Connects and logs in. The caller limits the time.
pub(super) async fn connect(
    address: &Address,
    login: &RedisConnectionInfo,
    settings: AsyncConnectionConfig,
) -> Result<Connection, RedisError> {
    let stream = FilteredStream::new(open(address).await?);
    let (requests, driver) = MultiplexedConnection::new_with_config(login, stream, settings).await?;
    let driver = tasks::spawn("redis connection", CancellationToken::new(), driver);
    Ok(Connection {
        requests,
        _driver: Arc::new(AbortOnDropHandle::new(driver)),
    })
}

type Stream = Box<dyn AsyncStream + Send + Unpin>;

async fn open(address: &Address) -> io::Result<Stream> {
    match address {
        Address::Unix(path) => Ok(Box::new(UnixStream::connect(path).await?)),
        Address::Tcp { host, port, tls } => {
            let stream = tcp(host, *port).await?;
            match tls {
                None => Ok(Box::new(stream)),
                Some(tls) => {
                    let connector = TlsConnector::from(Arc::clone(&tls.config));
                    Ok(Box::new(connector.connect(tls.name.clone(), stream).await?))
                }
            }
        }
    }
}

/// The first of the host's addresses that answers.
async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let found = tokio::net::lookup_host((host, port)).await?;
    let tries: Vec<_> = found
        .map(|address| Box::pin(TcpStream::connect(address)))
        .collect();
    if tries.is_empty() {
        let message = format!("{host} has no address");
        return Err(io::Error::new(io::ErrorKind::NotFound, message));
    }
    let (stream, _) = select_ok(tries).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
