//! `leasehold migrate`: migrates the store's tables manually, and raises its tokens after a restore.

use std::path::PathBuf;
use std::process::ExitCode;

use secrecy::ExposeSecret as _;

use super::exit_code::Exit;
use super::output::{print, report};
use config::{Config, ConfigSources};
use lease::{self, LeaseConfig, LeaseOpenError};
use runtime::db::Db;

/// Migrate the store's tables; after a restored backup, raise every fencing token.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Starting a server migrates by itself. Use this command to migrate earlier or with another account. On Postgres\n",
    "servers may run meanwhile; a store on SQLite must not be in use. With --raise-epoch no server may run on either.\n\n",
    "Examples:\n",
    "  leasehold migrate --config leasehold.toml\n",
    "  leasehold migrate --config leasehold.toml --raise-epoch   # after restoring a backup\n\n",
    "Exit codes: 0 done, 1 failure, 2 wrong usage or configuration.",
))]
pub struct Args {
    /// Configuration file; without it, leasehold.toml in this folder, where there is one
    #[arg(long, value_name = "FILE", env = "LEASEHOLD_CONFIG")]
    config: Option<PathBuf>,
    /// Raise every fencing token by 2^32, above any that the lost part of a restored store may have issued
    #[arg(long)]
    raise_epoch: bool,
    /// Print JSON: {migrated, epoch?}
    #[arg(long)]
    json: bool,
}

/// # Errors
/// Standard output cannot be written.
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let sources = ConfigSources::gather(args.config.as_deref(), Vec::new());
    let config = match sources.and_then(|sources| Config::load(&sources)) {
        Ok(config) => config,
        Err(errors) => {
            report(&errors.to_string());
            return Ok(Exit::Usage.into());
        }
    };
    let store = config.store.expose_secret();
    if let Err(error) = migrate(store, &config.lease).await {
        report(&format!("{error:#}"));
        return Ok(Exit::Failure.into());
    }
    let epoch = match args.raise_epoch {
        true => match lease::raise_epoch(store, &config.lease).await {
            Ok(epoch) => Some(epoch),
            Err(error) => {
                report(&format!("{:#}", anyhow::Error::from(error)));
                return Ok(Exit::Failure.into());
            }
        },
        false => None,
    };
    print(&message(epoch, args.json))?;
    Ok(Exit::Ok.into())
}

async fn migrate(store: &str, config: &LeaseConfig) -> anyhow::Result<()> {
    lease::migrate(store, config).await.map_err(in_use)?;
    let console = Db::open(store).await?;
    let history = console.history(store).await?;
    history.close().await;
    console.close().await;
    Ok(())
}

/// Adds the remedy.
fn in_use(error: LeaseOpenError) -> anyhow::Error {
    let is_in_use = matches!(error, LeaseOpenError::InUse { .. });
    let error = anyhow::Error::from(error);
    match is_in_use {
        true => error.context("the server must be stopped first"),
        false => error,
    }
}

fn message(epoch: Option<i64>, json: bool) -> String {
    match (epoch, json) {
        (Some(epoch), true) => format!("{}\n", serde_json::json!({"migrated": true, "epoch": epoch})),
        (None, true) => format!("{}\n", serde_json::json!({"migrated": true})),
        (Some(epoch), false) => format!(
            "The tables are up to date. Every fencing token is raised by 2^32: this is epoch {epoch}.\n"
        ),
        (None, false) => "The tables are up to date.\n".to_owned(),
    }
}
