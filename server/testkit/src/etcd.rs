//! A throwaway etcd: one node on loopback. Callers enable authentication.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    ops::Deref,
};

use rustix::process::Signal;

mod cluster;
mod peer_links;

pub use cluster::EtcdCluster;
pub use peer_links::PeerLinks;

use super::{
    StartError, Tls, binaries, process,
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
    /// Members of a cluster reach each other through links that can be cut: [`PeerLinks`].
    pub has_links: bool,
    /// More flags, e.g. `--auto-compaction-retention=1`.
    pub args: Vec<String>,
}

/// One member of a cluster.
#[derive(Debug, Clone)]
struct Member {
    name: String,
    client_port: u16,
    peer_port: u16,
    /// Where the other members reach it: its peer port, or a proxy in front of it.
    peer_url: String,
    /// `name=peer URL` of all members.
    cluster: String,
    /// Of `--initial-cluster-token`.
    token: String,
    /// Restored before the first start.
    snapshot: Option<Vec<u8>>,
}

/// A running etcd; see [`Server`] for its faults.
#[derive(Debug)]
pub struct Etcd {
    server: Server,
    client_port: u16,
    tls_port: Option<u16>,
}

impl Etcd {
    pub(super) async fn start(options: EtcdOptions) -> Result<Self, StartError> {
        Self::start_as(options, None).await
    }

    /// Starts one of several members, on ports chosen before.
    async fn start_as(options: EtcdOptions, member: Option<Member>) -> Result<Self, StartError> {
        let program = binaries::find("etcd", INSTALL)?;
        let folder = Folder::of_server(WHAT, "etcd", "KILL")?;
        if let Some(member) = &member {
            member.restore(&folder).await?;
        }
        let plan = |folder: &Folder, ports: [u16; 3]| {
            let ports = member
                .as_ref()
                .map_or(ports, |member| [member.client_port, member.peer_port, ports[2]]);
            Ok(Plan {
                program: program.clone(),
                args: arguments(&options, folder, ports, member.as_ref())?,
                marker: "serving client traffic",
                probe: Probe::Etcd((Ipv4Addr::LOCALHOST, ports[0]).into()),
                stop: Signal::TERM,
                end: Signal::KILL,
            })
        };
        let (server, [client_port, _, tls_port]) = Server::start(WHAT, folder, plan).await?;
        let tls_port = options.tls.is_some().then_some(tls_port);
        let client_port = member.map_or(client_port, |member| member.client_port);
        Ok(Self {
            server,
            client_port,
            tls_port,
        })
    }

    /// On 127.0.0.1; the same for its whole life.
    pub fn port(&self) -> u16 {
        self.client_port
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

impl Member {
    /// Makes the data folder from the snapshot, if there is one.
    async fn restore(&self, folder: &Folder) -> Result<(), StartError> {
        let failed = |source| StartError::Io {
            what: WHAT,
            doing: "restore a snapshot",
            source,
        };
        let Some(snapshot) = &self.snapshot else {
            return Ok(());
        };
        let file = folder.write_private("snapshot.db", snapshot).map_err(failed)?;
        let output =
            tokio::process::Command::from(process::command(&binaries::find("etcdctl", INSTALL)?, folder))
                .env("ETCDCTL_API", "3")
                .args(["snapshot", "restore"])
                .arg(file)
                .args(["--data-dir=data".to_owned(), format!("--name={}", self.name)])
                .arg(format!("--initial-cluster={}", self.cluster))
                .arg(format!("--initial-cluster-token={}", self.token))
                .arg(format!("--initial-advertise-peer-urls={}", self.peer_url))
                .output()
                .await
                .map_err(failed)?;
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(failed(io::Error::other(text)))
    }
}

impl Deref for Etcd {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

fn arguments(
    options: &EtcdOptions,
    folder: &Folder,
    ports: [u16; 3],
    member: Option<&Member>,
) -> io::Result<Vec<String>> {
    let [client_port, peer_port, tls_port] = ports;
    let mut clients = format!("http://127.0.0.1:{client_port}");
    let peer = format!("http://127.0.0.1:{peer_port}");
    let name = member.map_or(NAME, |member| &member.name);
    let mut args = vec![
        format!("--name={name}"),
        "--data-dir=data".to_owned(),
        "--logger=zap".to_owned(),
        "--log-outputs=stderr".to_owned(),
        format!("--listen-peer-urls={peer}"),
    ];
    match member {
        Some(member) => args.extend([
            format!("--initial-advertise-peer-urls={}", member.peer_url),
            format!("--initial-cluster={}", member.cluster),
            format!("--initial-cluster-token={}", member.token),
        ]),
        None => args.extend([
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster={NAME}={peer}"),
        ]),
    }
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
pub(super) async fn check_ready(address: SocketAddr) -> Result<(), String> {
    let answer = send_request(address, b"GET /health HTTP/1.0\r\n\r\n").await?;
    if answer.contains(r#""health":"true""#) {
        return Ok(());
    }
    Err(format!(
        "answered {:?}",
        answer.lines().last().unwrap_or_default()
    ))
}
