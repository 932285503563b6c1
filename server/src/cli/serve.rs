//! `leasehold serve`: the console.

use std::path::PathBuf;
use std::process::ExitCode;

use tokio_util::sync::CancellationToken;

use super::exit::Exit;
use super::output::{print, report};
use crate::clock::Clock;
use crate::config::{Config, ConfigErrors, FlagSource, Sources};
use crate::serve::{self, Setup};

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
    crate::telemetry::start_pushing(&config.log, &config.telemetry)?;
    serve::doors::limits::raise_open_files();
    let stop = crate::shutdown::on_signal()?;
    serve(config, stop).await
}

async fn serve(config: Config, stop: CancellationToken) -> anyhow::Result<ExitCode> {
    let setup = Setup {
        listen: config.listen,
        store: config.store,
        lease: config.lease,
        backends: config.backends,
        access: config.access,
        history: config.history,
        notify: config.notify,
        clock: Clock::start(),
        stop,
    };
    let serving = Box::pin(serve::start(setup)).await?;
    let home = &serving.home;
    print(&format!("Leasehold: {home}\n"))?;
    if let Some(link) = serving.identity.setup_link().await? {
        print(&format!(
            "Nobody can sign in yet. This link makes the first admin; it works once, within an hour:\n{home}/setup?link={}\n",
            link.expose()
        ))?;
    }
    serving.ended().await;
    crate::telemetry::flush().await;
    Ok(Exit::Ok.into())
}
