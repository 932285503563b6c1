//! `leasehold serve`: the console.

use std::path::PathBuf;
use std::process::ExitCode;

use super::exit::Exit;
use super::output::report;
use crate::config::{Config, ConfigErrors, FlagSource, Sources};

/// Serve the console.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Example:\n  leasehold serve --config leasehold.toml\n\n",
    "Exit codes: 0 stopped by Ctrl-C or SIGTERM, 1 failure, 2 wrong usage or configuration.",
))]
pub struct Args {
    /// Configuration file; without it, leasehold.toml in this folder, where there is one
    #[arg(long, value_name = "FILE", env = "LEASEHOLD_CONFIG")]
    pub config: Option<PathBuf>,
    /// Address and port, instead of the configured ones
    // A text: the configuration judges it, with its reasons.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
}

impl Args {
    fn load(&self) -> Result<Config, ConfigErrors> {
        let flags = self.listen.iter().map(|listen| FlagSource {
            key: "listen",
            name: "--listen",
            value: listen.clone(),
        });
        Config::load(&Sources::gather(self.config.as_deref(), flags.collect())?)
    }
}

/// # Errors
/// Whatever ends the server.
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let config = match args.load() {
        Ok(config) => config,
        Err(errors) => {
            report(&errors.to_string());
            return Ok(Exit::Usage.into());
        }
    };
    crate::telemetry::start(&config.log)?;
    let stop = crate::shutdown::on_signal()?;
    serve(config, stop).await
}

async fn serve(_config: Config, _stop: tokio_util::sync::CancellationToken) -> anyhow::Result<ExitCode> {
    anyhow::bail!("this build has no console to serve")
}
