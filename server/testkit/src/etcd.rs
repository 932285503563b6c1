//! A throwaway etcd: one node on loopback. Authentication is the callers' to enable.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    ops::Deref,
};

use rustix::process::Signal;

use super::{
    StartError, Tls, binaries,
    server::Server,
    server_spec::{Plan, Probe, send_request},
    temp_dir::Folder,
};

const WHAT: &str = "etcd";
const INSTALL: &str = "apt-get install -y etcd-server etcd-client";
const NAME: &str = "throwaway";

#[derive(Debug, Clone, Default)]
pub struct EtcdOptions {
    /// For tests: elections after 0.1 s instead of 1 s, which a start waits for.
    pub fast: bool,
    /// Opens an additional TLS endpoint.
    pub tls: Option<Tls>,
    /// More flags, e.g. `--auto-compaction-retention=1`.
    pub args: Vec<String>,
}

/// A running etcd; see [`Server`] for its faults.
#[derive(Debug)]
pub struct Etcd {
    server: Server,
    client_port: u16,
    peer_port: u16,
    tls_port: Option<u16>,
}

impl Etcd {
    pub(super) async fn start(options: EtcdOptions) -> Result<Self, StartError> {
        let program = binaries::find("etcd", INSTALL)?;
        let folder = Folder::of_server(WHAT, "etcd", "KILL")?;
        let plan = |folder: &Folder, ports: [u16; 3]| {
            Ok(Plan {
                program: program.clone(),
                args: arguments(&options, folder, ports)?,
                marker: "serving client traffic",
                probe: Probe::Etcd((Ipv4Addr::LOCALHOST, ports[0]).into()),
                stop: Signal::TERM,
                end: Signal::KILL,
            })
        };
        let (server, [client_port, peer_port, tls_port]) = Server::start(WHAT, folder, plan).await?;
        let tls_port = options.tls.is_some().then_some(tls_port);
        Ok(Self {
            server,
            client_port,
            peer_port,
            tls_port,
        })
    }

    /// On 127.0.0.1; the same for its whole life.
    pub fn port(&self) -> u16 {
        self.client_port
    }

    /// Unused: there is one node.
    pub fn peer_port(&self) -> u16 {
        self.peer_port
    }

    /// `http://127.0.0.1:port`
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.client_port)
    }

    /// `https://127.0.0.1:port`, when started with [`Tls`].
    pub fn tls_endpoint(&self) -> Option<String> {
        self.tls_port.map(|port| format!("https://127.0.0.1:{port}"))
    }
}

impl Deref for Etcd {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

fn arguments(options: &EtcdOptions, folder: &Folder, ports: [u16; 3]) -> io::Result<Vec<String>> {
    let [client_port, peer_port, tls_port] = ports;
    let mut clients = format!("http://127.0.0.1:{client_port}");
    let peer = format!("http://127.0.0.1:{peer_port}");
    let mut args = vec![
        format!("--name={NAME}"),
        "--data-dir=data".to_owned(),
        "--logger=zap".to_owned(),
        "--log-outputs=stderr".to_owned(),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster={NAME}={peer}"),
    ];
    if options.fast {
        args.extend([
            "--heartbeat-interval=10".to_owned(),
            "--election-timeout=100".to_owned(),
        ]);
    }
    if let Some(tls) = &options.tls {
        let tls = tls.install(folder)?;
        clients = format!("{clients},https://127.0.0.1:{tls_port}");
        args.extend([
            format!("--cert-file={}", tls.cert),
            format!("--key-file={}", tls.key),
        ]);
        if let Some(ca) = tls.client_ca {
            args.extend(["--client-cert-auth".to_owned(), format!("--trusted-ca-file={ca}")]);
        }
    }
    args.extend([
        format!("--listen-client-urls={clients}"),
        format!("--advertise-client-urls={clients}"),
    ]);
    args.extend(options.args.iter().cloned());
    Ok(args)
}

/// `GET /health`, without a client. It reads from the store, so there is a leader when it says `true`.
pub(super) async fn answers(address: SocketAddr) -> Result<(), String> {
    let answer = send_request(address, b"GET /health HTTP/1.0\r\n\r\n").await?;
    if answer.contains(r#""health":"true""#) {
        return Ok(());
    }
    Err(format!(
        "answered {:?}",
        answer.lines().last().unwrap_or_default()
    ))
}
