//! `leasehold rules import|export`: alert rules as files, for review in git and for Prometheus. Asks a running server.

mod export;
mod import;

use std::process::ExitCode;

use clap::Subcommand;
use secrecy::SecretString;
use url::Url;

use super::client::{Client, ClientError};
use super::exit::Exit;
use super::locks::{parse_server, parse_token};
use super::output::report;

/// Import and export alert rules.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Examples:\n",
    "  leasehold rules export > rules.toml\n",
    "  leasehold rules import rules.toml --dry-run\n",
    "  leasehold rules export --format prometheus > leasehold.rules.yml\n\n",
    "Exit codes: 0 done, also where nothing was to be changed, 1 failure, 2 wrong usage or a rule that does not fit,\n",
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

/// Which server's rules, and who asks.
#[derive(Debug, clap::Args)]
struct Place {
    /// Address of the server
    #[arg(long, value_name = "URL", env = "LEASEHOLD_SERVER", default_value = "http://127.0.0.1:3000", value_parser = parse_server)]
    server: Url,
    /// Token that says who you are; whoever imports is admin
    #[arg(long, value_name = "TOKEN", env = "LEASEHOLD_TOKEN", hide_env_values = true, value_parser = parse_token)]
    token: Option<SecretString>,
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

impl Place {
    fn client(&self) -> Result<Client, Exit> {
        Client::new(self.server.clone(), self.token.as_ref()).map_err(|error| failed(&error))
    }
}

fn failed(error: &ClientError) -> Exit {
    report(&error.to_string());
    error.exit()
}
