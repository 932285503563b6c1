//! `leasehold user` and `leasehold token`: people and machines, at the server's own terminal. They write the store themselves
//! and work with and without a running server. What they make, it knows at once; what they end, within a second.

mod granted;
pub mod token;
pub mod user;

use std::path::PathBuf;

use secrecy::ExposeSecret as _;

use super::exit::Exit;
use super::output::report;
use crate::audit::{Audit, Heads};
use crate::clock::Clock;
use crate::config::{Config, Sources};
use crate::db::Db;
use crate::identity::{Identity, IdentityError, Who};

/// Which server's people.
#[derive(Debug, clap::Args)]
pub(super) struct Place {
    /// Configuration file; without it, leasehold.toml in this folder, where there is one
    #[arg(long, value_name = "FILE", env = "LEASEHOLD_CONFIG")]
    config: Option<PathBuf>,
}

impl Place {
    async fn open(&self) -> Result<Identity, Exit> {
        let sources = Sources::gather(self.config.as_deref(), Vec::new());
        let config = sources
            .and_then(|sources| Config::load(&sources))
            .map_err(|errors| {
                report(&errors.to_string());
                Exit::Usage
            })?;
        let failed = |error: &dyn std::fmt::Display| {
            report(&error.to_string());
            Exit::Failure
        };
        let db = Db::open(config.store.expose_secret())
            .await
            .map_err(|error| failed(&error))?;
        let clock = Clock::start();
        let heads = Heads::new(config.access.audit_heads_file.clone());
        let audit = Audit::new(db.clone(), clock.clone(), heads);
        Identity::open(db, audit, clock)
            .await
            .map_err(|error| failed(&error))
    }
}

/// Who is at the terminal, for the record: whoever can write the store may do anything to it.
fn who() -> Who {
    Who::system("command line")
}

fn refused(error: &IdentityError) -> Exit {
    report(&error.to_string());
    match error {
        IdentityError::Invalid { .. } => Exit::Usage,
        _ => Exit::Failure,
    }
}
