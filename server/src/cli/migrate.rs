//! `leasehold migrate`: migrates the store's tables manually, raises its tokens after a restore, moves its leases to etcd.

use std::path::PathBuf;
use std::process::ExitCode;

use secrecy::ExposeSecret as _;

use super::exit_code::Exit;
use super::output::{print, report};
use crate::serve::installation;
use config::{Config, ConfigSources};
use domain::format;
use lease::{self, LeaseConfig, LeaseOpenError, MovedLeases, ShardIndex};
use runtime::clock::Clock;
use runtime::db::Db;

/// Migrate the store's tables, raise every fencing token after a restored backup, or move the leases to etcd.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "A server migrates at its start. Use this command to migrate earlier or with another account. Servers may run\n",
    "meanwhile on Postgres, but not on SQLite. With --raise-epoch or --to, stop all servers first.\n\n",
    "--to etcd moves the leases from `store` to the etcd that `lease.store` names, which must not have a lease store yet:\n",
    "every fencing token, and each held lease with its id, so that its holder can renew it after the move. Waiters and\n",
    "idempotency keys are not moved. After an interruption, run the command again. The old store is marked as moved:\n",
    "no server grants from it until --raise-epoch, without `lease.store`, removes the mark.\n\n",
    "Examples:\n",
    "  leasehold migrate --config leasehold.toml\n",
    "  leasehold migrate --config leasehold.toml --raise-epoch   # after restoring a backup\n",
    "  leasehold migrate --config leasehold.toml --to etcd       # after setting lease.store, with all servers stopped\n\n",
    "Exit codes: 0 done, 1 failure, 2 wrong usage or configuration.",
))]
pub struct Args {
    /// Configuration file [default: leasehold.toml in the current folder, if it exists]
    #[arg(long, value_name = "FILE", env = "LEASEHOLD_CONFIG")]
    config: Option<PathBuf>,
    /// Raise every fencing token by at least 2^32, above any that the lost part of a restored store may have issued
    #[arg(long)]
    raise_epoch: bool,
    /// With --raise-epoch: only this shard of `lease.store`, counted from 0
    #[arg(long, value_name = "INDEX", requires = "raise_epoch")]
    shard: Option<u32>,
    /// Move the leases from `store` to the etcd of `lease.store`
    #[arg(long, value_name = "STORE", conflicts_with = "raise_epoch")]
    to: Option<MoveTarget>,
    /// Print JSON: {migrated, epoch?, epochs?, moved?}; `epochs` of all shards
    #[arg(long)]
    json: bool,
}

/// Store that leases are moved to.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum MoveTarget {
    Etcd,
}

/// # Errors
/// Standard output cannot be written.
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let sources = ConfigSources::gather(args.config.as_deref(), Vec::new());
    let mut config = match sources.and_then(|sources| Config::load(&sources)) {
        Ok(config) => config,
        Err(errors) => {
            report(&errors.to_string());
            return Ok(Exit::Usage.into());
        }
    };
    let stores = config
        .lease
        .store
        .as_ref()
        .map_or(1, |stores| stores.addresses().len());
    if let Some(index) = args
        .shard
        .filter(|index| usize::try_from(*index).is_ok_and(|index| index >= stores))
    {
        report(&format!(
            "--shard {index} does not exist: the number of shards is {stores}, and they are counted from 0"
        ));
        return Ok(Exit::Usage.into());
    }
    let store = config.store.expose_secret();
    if let Some(MoveTarget::Etcd) = args.to {
        return match move_to_etcd(store, config.lease.clone(), !args.json).await {
            Ok(moved) => {
                print(&moved_message(moved, args.json))?;
                Ok(Exit::Ok.into())
            }
            Err(error) => {
                report(&format!("{error:#}"));
                Ok(Exit::Failure.into())
            }
        };
    }
    if let Err(error) = migrate(store, &mut config.lease).await {
        report(&format!("{error:#}"));
        return Ok(Exit::Failure.into());
    }
    let epochs = match args.raise_epoch {
        true => match lease::raise_epoch(store, &config.lease, args.shard.map(ShardIndex::new)).await {
            Ok(epochs) => epochs,
            Err(error) => {
                report(&format!("{:#}", anyhow::Error::from(error)));
                return Ok(Exit::Failure.into());
            }
        },
        false => Vec::new(),
    };
    print(&message(&epochs, args.json))?;
    Ok(Exit::Ok.into())
}

async fn migrate(store: &str, config: &mut LeaseConfig) -> anyhow::Result<()> {
    installation::complete(store, config).await?;
    lease::migrate(store, config).await.map_err(in_use)?;
    let console = Db::open(store).await?;
    let history = console.history(store).await?;
    history.close().await;
    console.close().await;
    Ok(())
}

async fn move_to_etcd(store: &str, mut config: LeaseConfig, is_shown: bool) -> anyhow::Result<MovedLeases> {
    installation::complete(store, &mut config).await?;
    let progress = |moved: u64, all: u64| {
        if is_shown {
            let (moved, all) = (format::count(moved), format::count(all));
            report(&format!("{moved} of {all} resources moved"));
        }
    };
    let moving = lease::move_to_etcd(store, &config, Clock::start(), progress);
    Box::pin(moving).await.map_err(in_use)
}

fn moved_message(moved: MovedLeases, is_json: bool) -> String {
    let MovedLeases { resources, held } = moved;
    if is_json {
        let moved = serde_json::json!({"resources": resources, "held": held});
        return format!("{}\n", serde_json::json!({"migrated": true, "moved": moved}));
    }
    format!(
        "Moved the fencing tokens of {} and {}. The old store is marked: no server grants from it. Start the servers with \
         this configuration.\n",
        format::counted(resources, "resource", "resources"),
        format::counted(held, "held lease", "held leases"),
    )
}

/// Adds the remedy.
fn in_use(error: LeaseOpenError) -> anyhow::Error {
    let is_in_use = matches!(error, LeaseOpenError::InUse { .. });
    let error = anyhow::Error::from(error);
    match is_in_use {
        true => error.context("stop the server first"),
        false => error,
    }
}

fn message(epochs: &[i64], json: bool) -> String {
    match (epochs, json) {
        ([], true) => format!("{}\n", serde_json::json!({"migrated": true})),
        ([epoch], true) => format!("{}\n", serde_json::json!({"migrated": true, "epoch": epoch})),
        (epochs, true) => format!("{}\n", serde_json::json!({"migrated": true, "epochs": epochs})),
        ([], false) => "The tables are up to date.\n".to_owned(),
        ([epoch], false) => format!(
            "The tables are up to date. Every fencing token is raised by at least 2^32: this is epoch {epoch}.\n"
        ),
        (epochs, false) => {
            let epochs: Vec<String> = epochs.iter().map(ToString::to_string).collect();
            format!(
                "The tables are up to date. Every fencing token of every shard is raised by at least 2^32: these are epochs {}.\n",
                epochs.join(", ")
            )
        }
    }
}
