//! `leasehold user` and `leasehold token`: users and API tokens, managed on the server's machine. The commands write
//! to the store and work with and without a running server, which sees new accounts immediately and removed ones
//! within a second.

mod grant_args;
pub mod token;
pub mod user;

use std::path::PathBuf;

use secrecy::ExposeSecret as _;

use super::exit_code::Exit;
use super::output::report;
use crate::audit::{Audit, ChainCheckpoints};
use crate::identity::{Identity, IdentityError, Principal};
use config::{Config, ConfigSources};
use runtime::clock::Clock;
use runtime::db::{Db, DbError};

/// The store of users.
#[derive(Debug, clap::Args)]
pub(super) struct AccountStore {
    /// Configuration file [default: leasehold.toml in the current folder, if it exists]
    #[arg(long, value_name = "FILE", env = "LEASEHOLD_CONFIG")]
    config: Option<PathBuf>,
}

impl AccountStore {
    fn load(&self) -> Result<Config, Exit> {
        let sources = ConfigSources::gather(self.config.as_deref(), Vec::new());
        sources
            .and_then(|sources| Config::load(&sources))
            .map_err(|errors| {
                report(&errors.to_string());
                Exit::Usage
            })
    }

    /// Opens an existing store. A missing one is an error, because a new store would have no users.
    async fn open(&self) -> Result<Identity, Exit> {
        Self::open_store(self.load()?).await
    }

    async fn open_store(config: Config) -> Result<Identity, Exit> {
        let db = Db::open_existing(config.store.expose_secret()).await;
        open_identity(db, config).await
    }

    /// Opens the store, or creates it: accounts may be added before the first start of the server. A created store is
    /// reported, because it may be in another folder than the server's by mistake.
    async fn open_or_create(&self) -> Result<Identity, Exit> {
        let config = self.load()?;
        let store = config.store.expose_secret();
        let db = match Db::open_existing(store).await {
            Err(DbError::NoFile(file)) => {
                let created = Db::open(store).await;
                if created.is_ok() {
                    report(&format!("a new store was created: {}", file.display()));
                }
                created
            }
            opened => opened,
        };
        open_identity(db, config).await
    }
}

async fn open_identity(db: Result<Db, DbError>, config: Config) -> Result<Identity, Exit> {
    let failed = |error: &dyn std::fmt::Display| {
        report(&error.to_string());
        Exit::Failure
    };
    let db = db.map_err(|error| failed(&error))?;
    let clock = Clock::start();
    let heads = ChainCheckpoints::new(config.access.audit_checkpoint_file);
    let audit = Audit::new(db.clone(), clock.clone(), heads);
    Identity::open(db, audit, clock)
        .await
        .map_err(|error| failed(&error))
}

/// Actor of the audit entries: any user who can write to the store.
fn command_line() -> Principal {
    Principal::system("command line")
}

fn report_error(error: &IdentityError) -> Exit {
    report(&error.to_string());
    match error {
        IdentityError::Invalid { .. } => Exit::Usage,
        _ => Exit::Failure,
    }
}
