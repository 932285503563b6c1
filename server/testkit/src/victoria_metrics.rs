//! A throwaway VictoriaMetrics: receives metrics by OTLP and answers PromQL.

use std::net::Ipv4Addr;
use std::ops::Deref;

use rustix::process::Signal;

use super::{
    StartError, binaries,
    run_as::Account,
    server::Server,
    server_spec::{Plan, Probe},
    temp_dir::Folder,
};

const WHAT: &str = "VictoriaMetrics";
const INSTALL: &str = "scripts/setup monitoring, and ~/.cache/leasehold/bin in the path";

/// A running VictoriaMetrics; see [`Server`] for its faults.
#[derive(Debug)]
pub struct Victoria {
    server: Server,
    port: u16,
}

impl Victoria {
    pub(super) async fn start() -> Result<Self, StartError> {
        let program = binaries::find("victoria-metrics", INSTALL)?;
        // Runs as root too, and another account could not read the tool cache that contains it.
        let folder = Folder::create("victoria", Account::ourselves(), "KILL");
        let folder = folder.map_err(|source| StartError::Io {
            what: WHAT,
            doing: "make a folder",
            source,
        })?;
        let plan = |_: &Folder, [port]: [u16; 1]| {
            Ok(Plan {
                program: program.clone(),
                args: vec![
                    "-storageDataPath=data".to_owned(),
                    format!("-httpListenAddr=127.0.0.1:{port}"),
                    "-memory.allowedBytes=64MiB".to_owned(),
                    // Prometheus names; new samples are visible to queries immediately.
                    "-opentelemetry.usePrometheusNaming".to_owned(),
                    "-search.latencyOffset=0s".to_owned(),
                ],
                marker: "started server at",
                // The same page as Prometheus has.
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

    /// Endpoint for metrics by OTLP over HTTP.
    pub fn otlp_url(&self) -> String {
        format!("{}/opentelemetry/v1/metrics", self.url())
    }
}

impl Deref for Victoria {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}
