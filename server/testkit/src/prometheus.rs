//! A throwaway Prometheus, and `promtool`. Debian builds it without the OTLP receiver.

use std::{
    net::{Ipv4Addr, SocketAddr},
    ops::Deref,
    path::PathBuf,
};

use rustix::process::Signal;

use super::{
    StartError, alertmanager,
    binaries::{self, MissingServer},
    server::Server,
    server_spec::{Plan, Probe},
    temp_dir::Folder,
};

const WHAT: &str = "Prometheus";
const INSTALL: &str = "apt-get install -y --no-install-recommends prometheus";

#[derive(Debug, Clone, Default)]
pub struct PrometheusOptions {
    /// Its configuration file, `prometheus.yml`.
    pub config: String,
    /// More files in its folder, by name: tokens, rules.
    pub files: Vec<(String, String)>,
}

/// A running Prometheus; see [`Server`] for its faults.
#[derive(Debug)]
pub struct Prometheus {
    server: Server,
    port: u16,
}

/// The program that checks metrics, rules and configuration.
///
/// # Errors
/// It is not installed.
pub fn promtool() -> Result<PathBuf, MissingServer> {
    binaries::find("promtool", INSTALL)
}

impl Prometheus {
    pub(super) async fn start(options: PrometheusOptions) -> Result<Self, StartError> {
        let program = binaries::find("prometheus", INSTALL)?;
        let folder = Folder::of_server(WHAT, "prometheus", "KILL")?;
        let plan = |folder: &Folder, [port]: [u16; 1]| {
            let config = folder.write_private("prometheus.yml", options.config.as_bytes())?;
            for (name, text) in &options.files {
                folder.write_private(name, text.as_bytes())?;
            }
            Ok(Plan {
                program: program.clone(),
                args: vec![
                    format!("--config.file={}", config.display()),
                    "--storage.tsdb.path=data".to_owned(),
                    format!("--web.listen-address=127.0.0.1:{port}"),
                ],
                marker: "Listening on",
                probe: Probe::Prometheus((Ipv4Addr::LOCALHOST, port).into()),
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

impl Deref for Prometheus {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

/// `GET /-/ready`, as Alertmanager has it.
pub(super) async fn check_ready(address: SocketAddr) -> Result<(), String> {
    alertmanager::check_ready(address).await
}
