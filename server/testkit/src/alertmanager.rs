//! A throwaway Alertmanager: one of them on loopback, without a cluster.

use std::{
    net::{Ipv4Addr, SocketAddr},
    ops::Deref,
};

use rustix::process::Signal;

use super::{
    StartError, binaries,
    server::Server,
    server_spec::{Plan, Probe, send_request},
    temp_dir::Folder,
};

const WHAT: &str = "Alertmanager";
const PROGRAM: &str = "prometheus-alertmanager";
const INSTALL: &str = "apt-get install -y --no-install-recommends prometheus-alertmanager";

#[derive(Debug, Clone, Default)]
pub struct AlertmanagerOptions {
    /// Its configuration file, `alertmanager.yml`.
    pub config: String,
}

/// A running Alertmanager; see [`Server`] for its faults.
#[derive(Debug)]
pub struct Alertmanager {
    server: Server,
    port: u16,
}

impl Alertmanager {
    pub(super) async fn start(options: AlertmanagerOptions) -> Result<Self, StartError> {
        let program = binaries::find(PROGRAM, INSTALL)?;
        let folder = Folder::of_server(WHAT, "alertmanager", "KILL")?;
        let plan = |folder: &Folder, [port]: [u16; 1]| {
            let config = folder.write_private("alertmanager.yml", options.config.as_bytes())?;
            Ok(Plan {
                program: program.clone(),
                args: vec![
                    format!("--config.file={}", config.display()),
                    "--storage.path=data".to_owned(),
                    format!("--web.listen-address=127.0.0.1:{port}"),
                    // Empty: not clustered.
                    "--cluster.listen-address=".to_owned(),
                ],
                marker: "Listening on",
                probe: Probe::Alertmanager((Ipv4Addr::LOCALHOST, port).into()),
                stop: Signal::TERM,
                end: Signal::KILL,
            })
        };
        let (server, [port]) = Server::start(WHAT, folder, plan).await?;
        Ok(Self { server, port })
    }

    /// `http://127.0.0.1:port`; the same for its whole life.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Deref for Alertmanager {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

/// `GET /-/ready`, without a client.
pub(super) async fn check_ready(address: SocketAddr) -> Result<(), String> {
    let answer = send_request(address, b"GET /-/ready HTTP/1.0\r\n\r\n").await?;
    let first = answer.lines().next().unwrap_or_default();
    if first.contains(" 200 ") {
        return Ok(());
    }
    Err(format!("answered {first:?}"))
}
