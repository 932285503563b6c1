//! A throwaway Redis: standalone on loopback, configured by a file in its folder, no snapshots. Clusters and Sentinels
//! are made of them.

mod cluster;
mod sentinel;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    ops::Deref,
};

use rustix::process::Signal;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{
    StartError, Tls, address, binaries,
    server::Server,
    server_spec::{Plan, Probe},
    temp_dir::Folder,
};

pub use cluster::RedisCluster;
pub use sentinel::{RedisSentinel, SentinelOptions};

const WHAT: &str = "Redis";
const INSTALL: &str = "apt-get install -y redis-server";

#[derive(Debug, Clone, Default)]
pub struct RedisOptions {
    /// Keep the data over [`Server::restart`]. Without it, a restart is a `FLUSHALL`.
    pub append_only: bool,
    /// The setting `notify-keyspace-events`, e.g. `KEA`; none by default, as in Redis itself.
    pub notify_keyspace_events: Option<String>,
    /// The default user's password (`requirepass`).
    pub password: Option<String>,
    /// One `user` line each, e.g. `watcher on >secret ~lock:* +@read`.
    pub acl_users: Vec<String>,
    /// Opens an additional TLS port.
    pub tls: Option<Tls>,
    /// More lines for the configuration file, e.g. `cluster-enabled yes`.
    pub config: Vec<String>,
    /// Runs as a Sentinel, with these lines instead of those of a data node.
    pub sentinel: Option<Vec<String>>,
}

/// A running Redis; see [`Server`] for its faults.
#[derive(Debug)]
pub struct Redis {
    server: Server,
    port: u16,
    tls_port: Option<u16>,
    password: Option<String>,
}

impl Redis {
    pub(super) async fn start(options: RedisOptions) -> Result<Self, StartError> {
        let program = binaries::find("redis-server", INSTALL)?;
        let folder = Folder::of_server(WHAT, "redis", "KILL")?;
        let plan = |folder: &Folder, ports: [u16; 2]| {
            let config = configuration(&options, folder, ports)?;
            let config = folder.write_private("redis.conf", config.as_bytes())?;
            Ok(Plan {
                program: program.clone(),
                args: [config.to_string_lossy().into_owned()]
                    .into_iter()
                    .chain(options.sentinel.iter().map(|_| "--sentinel".to_owned()))
                    .collect(),
                marker: if options.sentinel.is_some() {
                    "Sentinel ID is"
                } else {
                    "Ready to accept connections"
                },
                probe: Probe::Redis((Ipv4Addr::LOCALHOST, ports[0]).into()),
                stop: Signal::TERM,
                end: Signal::KILL,
            })
        };
        let (server, [port, tls_port]) = Server::start(WHAT, folder, plan).await?;
        let tls_port = options.tls.is_some().then_some(tls_port);
        Ok(Self {
            server,
            port,
            tls_port,
            password: options.password,
        })
    }

    /// On 127.0.0.1; the same for its whole life.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `redis://127.0.0.1:port/`, with the default user's password if there is one.
    pub fn url(&self) -> String {
        address::url("redis", ("", self.password.as_deref()), self.port, "")
    }

    /// As [`url`](Self::url), for one of the `acl_users`.
    pub fn url_for(&self, user: &str, password: &str) -> String {
        address::url("redis", (user, Some(password)), self.port, "")
    }

    /// `rediss://127.0.0.1:port/`, when started with [`Tls`].
    pub fn tls_url(&self) -> Option<String> {
        self.tls_port
            .map(|port| address::url("rediss", ("", self.password.as_deref()), port, ""))
    }
}

impl Deref for Redis {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

fn configuration(options: &RedisOptions, folder: &Folder, [port, tls_port]: [u16; 2]) -> io::Result<String> {
    let mut lines = vec![
        "bind 127.0.0.1".to_owned(),
        format!("port {port}"),
        "save \"\"".to_owned(),
    ];
    lines.push(format!("dir {}", quoted(&folder.path().to_string_lossy())));
    if let Some(sentinel_lines) = &options.sentinel {
        lines.extend(sentinel_lines.iter().chain(&options.config).cloned());
        return Ok(lines.join("\n") + "\n");
    }
    lines.push(format!(
        "appendonly {}",
        if options.append_only { "yes" } else { "no" }
    ));
    lines.extend(
        options
            .notify_keyspace_events
            .iter()
            .map(|events| format!("notify-keyspace-events {}", quoted(events))),
    );
    lines.extend(
        options
            .password
            .iter()
            .map(|password| format!("requirepass {}", quoted(password))),
    );
    lines.extend(options.acl_users.iter().map(|user| format!("user {user}")));
    if let Some(tls) = &options.tls {
        let tls = tls.install(folder)?;
        lines.push(format!("tls-port {tls_port}"));
        lines.push(format!("tls-cert-file {}", quoted(&tls.cert)));
        lines.push(format!("tls-key-file {}", quoted(&tls.key)));
        match tls.client_ca {
            Some(ca) => lines.extend([
                format!("tls-ca-cert-file {}", quoted(&ca)),
                "tls-auth-clients yes".to_owned(),
            ]),
            None => lines.push("tls-auth-clients no".to_owned()),
        }
    }
    lines.extend(options.config.iter().cloned());
    Ok(lines.join("\n") + "\n")
}

/// A value in Redis's own quoting.
fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

/// `PING`, without a client: a response that requires a password counts as ready, `LOADING` does not.
pub(super) async fn check_ready(address: SocketAddr) -> Result<(), String> {
    let text = |error: io::Error| error.to_string();
    let mut stream = TcpStream::connect(address).await.map_err(text)?;
    stream.write_all(b"PING\r\n").await.map_err(text)?;
    let mut answer = [0; 128];
    let len = stream.read(&mut answer).await.map_err(text)?;
    let answer = String::from_utf8_lossy(&answer[..len]);
    if answer.starts_with("+PONG") || answer.starts_with("-NOAUTH") || answer.starts_with("-NOPERM") {
        return Ok(());
    }
    Err(format!("answered {:?}", answer.trim()))
}
