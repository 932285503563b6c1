//! Receivers of notifications: whether each can be reached, without telling it anything.

use secrecy::ExposeSecret as _;

use super::finding::Finding;
use super::secrets;
use crate::config::Config;
use crate::db::Db;
use crate::notify::{self, Reached};

const CHECK: &str = "receivers";

/// What is wrong with the store itself is told elsewhere.
pub(super) async fn examine(config: &Config) -> Vec<Finding> {
    let Ok(Some(db)) = Db::look(config.store.expose_secret()) else {
        return Vec::new();
    };
    let reached = notify::reach(&db, &secrets::vault(config), &config.notify).await;
    db.close().await;
    match reached {
        Ok(reached) => reached.into_iter().map(finding).collect(),
        // A store that nobody has served yet has none.
        Err(sqlx::Error::Database(error)) if is_no_table(&*error) => Vec::new(),
        Err(error) => vec![Finding::warning(
            CHECK,
            format!("not looked at: the store does not tell them: {error}"),
            "mend the store first",
        )],
    }
}

fn is_no_table(error: &dyn sqlx::error::DatabaseError) -> bool {
    error.code().is_some_and(|code| code == "42P01") || error.message().starts_with("no such table")
}

fn finding(reached: Reached) -> Finding {
    let check = format!("receiver {}", reached.receiver);
    match reached.fault {
        None => Finding::ok(&check, format!("{} answers", reached.address)),
        Some(fault) => {
            let found = format!("{} is not reached: {}", reached.address, fault.why);
            Finding::fault(&check, found, fault.mend)
        }
    }
}
