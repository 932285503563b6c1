//! A throwaway Consul: one server on loopback, its data on disk. With ACLs on, everything that is
//! not granted is denied; callers create the tokens.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    ops::Deref,
};

use rustix::process::Signal;

use super::{
    StartError, binaries,
    run_as::Account,
    server::Server,
    server_spec::{Plan, Probe, send_request},
    temp_dir::Folder,
};

const WHAT: &str = "Consul";
/// Name of the only node.
const NODE: &str = "throwaway";
const INSTALL: &str = "scripts/setup servers";

#[derive(Debug, Clone, Default)]
pub struct ConsulOptions {
    /// Turns ACLs on, with this token for everything: a UUID.
    pub root_token: Option<String>,
    /// More keys of the configuration, each `"name":value`.
    pub config: Vec<String>,
}

/// A running Consul; see [`Server`] for its faults.
#[derive(Debug)]
pub struct Consul {
    server: Server,
    port: u16,
}

impl Consul {
    pub(super) async fn start(options: ConsulOptions) -> Result<Self, StartError> {
        let program = binaries::find("consul", INSTALL)?;
        // Runs as root too, and another account could not read the tool cache that contains it.
        let folder = Folder::create("consul", Account::ourselves(), "KILL");
        let folder = folder.map_err(|source| StartError::Io {
            what: WHAT,
            doing: "make a folder",
            source,
        })?;
        let plan = |folder: &Folder, ports: [u16; 3]| {
            let config =
                folder.write_private("consul.json", configuration(&options, folder, ports)?.as_bytes())?;
            Ok(Plan {
                program: program.clone(),
                args: vec!["agent".to_owned(), format!("-config-file={}", config.display())],
                marker: "cluster leadership acquired",
                probe: Probe::Consul(ConsulProbe {
                    address: (Ipv4Addr::LOCALHOST, ports[0]).into(),
                    token: options.root_token.clone().unwrap_or_default(),
                }),
                stop: Signal::TERM,
                end: Signal::KILL,
            })
        };
        let (server, [port, ..]) = Server::start(WHAT, folder, plan).await?;
        Ok(Self { server, port })
    }

    /// On 127.0.0.1; the same for its whole life.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `http://127.0.0.1:port`
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Deref for Consul {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

fn configuration(options: &ConsulOptions, folder: &Folder, ports: [u16; 3]) -> io::Result<String> {
    let [http, serf, rpc] = ports;
    let data = folder.path().join("data");
    let mut parts = vec![
        format!(r#""server":true,"bootstrap_expect":1,"node_name":"{NODE}","disable_update_check":true"#),
        r#""bind_addr":"127.0.0.1","client_addr":"127.0.0.1""#.to_owned(),
        // Elections as fast as Consul allows, and sessions that end within seconds of their TTL.
        r#""performance":{"raft_multiplier":1},"session_ttl_min":"1s""#.to_owned(),
        format!(r#""data_dir":"{}""#, data.display()),
        format!(
            r#""ports":{{"http":{http},"serf_lan":{serf},"server":{rpc},"dns":-1,"grpc":-1,"https":-1,"serf_wan":-1}}"#
        ),
    ];
    if let Some(token) = &options.root_token {
        parts.push(format!(
            r#""acl":{{"enabled":true,"default_policy":"deny","tokens":{{"master":"{token}","agent":"{token}"}}}}"#
        ));
    }
    parts.extend(options.config.iter().cloned());
    Ok(format!("{{{}}}\n", parts.join(",")))
}

/// Requests the agent's own node: sessions can be created once the leader has registered it.
#[derive(Debug, Clone)]
pub(super) struct ConsulProbe {
    address: SocketAddr,
    /// Empty where ACLs are off.
    token: String,
}

impl ConsulProbe {
    pub(super) async fn check_ready(&self) -> Result<(), String> {
        let request = format!(
            "GET /v1/catalog/node/{NODE} HTTP/1.0\r\nX-Consul-Token: {}\r\n\r\n",
            self.token
        );
        let answer = send_request(self.address, request.as_bytes()).await?;
        if answer.starts_with("HTTP/1.0 200") && answer.contains("\"Address\":") {
            return Ok(());
        }
        Err(format!("its node is not registered: {answer:?}"))
    }
}
