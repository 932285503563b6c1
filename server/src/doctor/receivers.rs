//! Connectivity checks of notification receivers, without a message.

use secrecy::ExposeSecret as _;

use super::check_result::Finding;
use super::secrets;
use crate::notify::{self, Reachable};
use config::Config;
use runtime::db::Db;

const CHECK: &str = "receivers";

/// Faults of the store are reported by its own check.
pub(super) async fn examine(config: &Config) -> Vec<Finding> {
    let Ok(Some(db)) = Db::open_read_only(config.store.expose_secret()) else {
        return Vec::new();
    };
    let reached = notify::reach(&db, &secrets::vault(config), &config.notify).await;
    db.close().await;
    match reached {
        Ok(reached) => reached.into_iter().map(finding).collect(),
        // A store that no server has used yet has no such table.
        Err(sqlx::Error::Database(error)) if is_no_table(&*error) => Vec::new(),
        Err(error) => vec![Finding::warning(
            CHECK,
            format!("not checked: the store could not list the receivers: {error}"),
            "fix the store first",
        )],
    }
}

fn is_no_table(error: &dyn sqlx::error::DatabaseError) -> bool {
    error.code().is_some_and(|code| code == "42P01") || error.message().starts_with("no such table")
}

fn finding(reached: Reachable) -> Finding {
    let check = format!("receiver {}", reached.receiver);
    match reached.fault {
        None => Finding::ok(&check, format!("{} answers", reached.address)),
        Some(fault) => {
            let found = format!("{} cannot be reached: {}", reached.address, fault.why);
            Finding::fault(&check, found, fault.remedy)
        }
    }
}
