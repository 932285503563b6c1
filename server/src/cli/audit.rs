//! `leasehold audit`: verifies and exports the audit log. Reads the store directly, without a server.

mod export;
mod verify;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use secrecy::ExposeSecret as _;

use super::exit_code::Exit;
use super::output::report;
use crate::audit::{Audit, ChainCheckpoints};
use config::{Config, ConfigSources};
use runtime::clock::Clock;
use runtime::db::Db;

/// Verify or export the audit log.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Examples:\n",
    "  leasehold audit verify --config leasehold.toml --checkpoints audit-checkpoints.copy\n",
    "  leasehold audit export --format csv > audit.csv\n\n",
    "Exit codes: 0 done and intact, 1 failure or an altered audit log, 2 wrong usage or configuration.",
))]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Verify(verify::Args),
    Export(export::Args),
}

/// Location of the audit log.
#[derive(Debug, clap::Args)]
struct LogLocation {
    /// Configuration file [default: leasehold.toml in the current folder, if it exists]
    #[arg(long, value_name = "FILE", env = "LEASEHOLD_CONFIG")]
    config: Option<PathBuf>,
}

/// # Errors
/// Standard output cannot be written.
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Verify(args) => verify::run(args).await,
        Command::Export(args) => export::run(args).await,
    }
}

impl LogLocation {
    async fn open(&self) -> Result<Audit, Exit> {
        let sources = ConfigSources::gather(self.config.as_deref(), Vec::new());
        let config = sources
            .and_then(|sources| Config::load(&sources))
            .map_err(|errors| {
                report(&errors.to_string());
                Exit::Usage
            })?;
        let db = Db::open_existing(config.store.expose_secret())
            .await
            .map_err(|error| {
                report(&error.to_string());
                Exit::Failure
            })?;
        Ok(Audit::new(db, Clock::start(), ChainCheckpoints::default()))
    }
}
