//! A throwaway ZooKeeper on loopback, alone or as a member of an ensemble: every transaction forced to disk before it is answered.

use std::{
    net::{Ipv4Addr, SocketAddr},
    ops::Deref,
    path::Path,
};

use rustix::process::Signal;

use super::{
    MissingServer, StartError, binaries,
    server::Server,
    server_spec::{Plan, Probe, send_request},
    temp_dir::Folder,
};

const WHAT: &str = "ZooKeeper";
const INSTALL: &str = "apt-get install -y --no-install-recommends zookeeper default-jre-headless";
/// Where Debian puts it; its manifest names the jars that it needs.
const JAR: &str = "/usr/share/java/zookeeper.jar";
/// Logs to standard output, where the start finds the readiness line; comes with ZooKeeper.
const LOGGER: &str = "/usr/share/java/slf4j-simple.jar";

#[derive(Debug, Clone, Default)]
pub struct ZookeeperOptions {
    /// More lines for the configuration file, e.g. `maxSessionTimeout=60000`.
    pub config: Vec<String>,
    /// Its number in an ensemble, whose members `config` lists as `server.N`; `None`: standalone.
    pub id: Option<u8>,
}

/// A running ZooKeeper; see [`Server`] for its faults.
#[derive(Debug)]
pub struct Zookeeper {
    server: Server,
    port: u16,
}

impl Zookeeper {
    pub(super) async fn start(options: ZookeeperOptions) -> Result<Self, StartError> {
        let program = binaries::find("java", INSTALL)?;
        if !Path::new(JAR).is_file() {
            return Err(StartError::Missing(MissingServer {
                what: "zookeeper",
                install: INSTALL,
            }));
        }
        let folder = Folder::of_server(WHAT, "zookeeper", "KILL")?;
        let plan = |folder: &Folder, [port]: [u16; 1]| {
            if let Some(id) = options.id {
                folder.write_private("myid", id.to_string().as_bytes())?;
            }
            let config = folder.write_private("zoo.cfg", configuration(&options, folder, port).as_bytes())?;
            Ok(Plan {
                program: program.clone(),
                args: vec![
                    "-cp".to_owned(),
                    format!("{LOGGER}:{JAR}"),
                    "-Xmx512m".to_owned(),
                    // For a short life: a third of the processor time of a start was the second compiler's.
                    "-XX:TieredStopAtLevel=1".to_owned(),
                    main_class(&options).to_owned(),
                    config.to_string_lossy().into_owned(),
                ],
                marker: "binding to port",
                probe: Probe::Zookeeper((Ipv4Addr::LOCALHOST, port).into()),
                stop: Signal::TERM,
                end: Signal::KILL,
            })
        };
        let (server, [port]) = Server::start(WHAT, folder, plan).await?;
        Ok(Self { server, port })
    }

    /// On 127.0.0.1; the same for its whole life.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `127.0.0.1:port`; the same for its whole life.
    pub fn cluster(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Packets that it has received from all clients: requests, pings, and commands such as this one.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn packets_received(&self) -> Result<u64, String> {
        let answer = send_request((Ipv4Addr::LOCALHOST, self.port).into(), b"srvr").await?;
        let count = answer.lines().find_map(|line| line.strip_prefix("Received: "));
        let count = count.and_then(|count| count.trim().parse().ok());
        count.ok_or_else(|| format!("answered {answer:?}"))
    }
}

impl Deref for Zookeeper {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

fn main_class(options: &ZookeeperOptions) -> &'static str {
    match options.id {
        Some(_) => "org.apache.zookeeper.server.quorum.QuorumPeerMain",
        None => "org.apache.zookeeper.server.ZooKeeperServerMain",
    }
}

fn configuration(options: &ZookeeperOptions, folder: &Folder, port: u16) -> String {
    let mut lines = vec![
        format!("dataDir={}", folder.path().display()),
        "clientPortAddress=127.0.0.1".to_owned(),
        format!("clientPort={port}"),
        "tickTime=2000".to_owned(),
        "maxClientCnxns=0".to_owned(),
        "forceSync=yes".to_owned(),
        "admin.enableServer=false".to_owned(),
        "4lw.commands.whitelist=srvr".to_owned(),
    ];
    if options.id.is_some() {
        // With one voter as well: observers follow it.
        let ensemble = ["standaloneEnabled=false", "initLimit=10", "syncLimit=5"];
        lines.extend(ensemble.map(str::to_owned));
    }
    lines.extend(options.config.iter().cloned());
    lines.join("\n") + "\n"
}

/// `srvr`, a command that needs no session. `ruok` is answered before sessions can be opened.
pub(super) async fn check_ready(address: SocketAddr) -> Result<(), String> {
    let answer = send_request(address, b"srvr").await?;
    match answer.contains("Mode: ") {
        true => Ok(()),
        false => Err(format!("answered {answer:?}")),
    }
}
