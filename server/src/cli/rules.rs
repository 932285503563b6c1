//! `leasehold rules import|export`: alert rules as files, for review in git and for Prometheus, through a running
//! server.

mod export;
mod import;

use std::process::ExitCode;

use clap::Subcommand;

use super::client::{Client, ClientError};
use super::connection::Connection;
use super::exit_code::Exit;
use super::output::report;

/// Import and export alert rules.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Examples:\n",
    "  leasehold rules export > rules.toml\n",
    "  leasehold rules import rules.toml --dry-run\n",
    "  leasehold rules export --format prometheus > leasehold.rules.yml\n\n",
    "Exit codes: 0 done or nothing to change, 1 failure, 2 wrong usage or an invalid rule,\n",
    "3 server unreachable.",
))]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Import(import::Args),
    Export(export::Args),
}

/// # Errors
/// Standard output cannot be written.
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let done = match args.command {
        Command::Import(args) => Box::pin(import::run(args)).await?,
        Command::Export(args) => export::run(args).await?,
    };
    Ok(done.err().unwrap_or(Exit::Ok).into())
}

fn client(connection: &Connection) -> Result<Client, Exit> {
    Client::new(connection).map_err(|error| failed(&error))
}

fn failed(error: &ClientError) -> Exit {
    report(&error.to_string());
    error.exit()
}
