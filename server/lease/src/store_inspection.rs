//! Read-only inspection of a store for `leasehold doctor`.

use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};

use super::error::LeaseOpenError;
use super::store;
use config::LeaseConfig;
use runtime::clock::Clock;
use runtime::db::read_only;
use runtime::db::schema::{self, MigrationStatus};

/// Result of the inspection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreInspection {
    pub migrations: MigrationStatus,
    /// Why a confirmed write could be lost, if it could.
    pub not_durable: Option<String>,
    /// Why fencing tokens would be issued twice, if they would.
    pub rewound: Option<String>,
    /// Where its leases were moved to.
    pub moved_to: Option<String>,
    /// The store's clock; for SQLite the last time recorded in the file.
    pub now: Option<DateTime<Utc>>,
    /// `PostgreSQL 15.8`; `None` for a file.
    pub version: Option<String>,
    /// Whether this role may change the tables.
    pub may_migrate: bool,
    /// `None` for a file or a store without tables.
    pub audit_rights: Option<AuditRights>,
}

/// Permissions of the serving role on audit rows in Postgres.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditRights {
    /// It owns the table: triggers protect the rows, but it could drop them.
    Owner,
    /// It does not own the table and may change or delete rows.
    Writer,
    /// It may only read and append rows.
    Appender,
}

const REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// Inspects the SQLite file of leases; the file must exist.
///
/// # Errors
/// The file cannot be read or is not a store.
pub async fn sqlite(path: &Path) -> Result<StoreInspection, LeaseOpenError> {
    let mut connection = open_read_only(path).await.map_err(LeaseOpenError::Store)?;
    let inspected = store::sqlite::inspect_store(&mut connection, path).await;
    let _closed = connection.close().await;
    inspected.map_err(LeaseOpenError::Store)
}

/// Migration status of any SQLite file of the product, read-only.
///
/// # Errors
/// The file cannot be read or is not a store.
pub async fn migrations(path: &Path) -> Result<MigrationStatus, sqlx::Error> {
    let mut connection = open_read_only(path).await?;
    let migrations = schema::status_sqlite(&mut connection).await;
    let _closed = connection.close().await;
    migrations
}

/// Inspects a Postgres store.
///
/// # Errors
/// The server does not answer or refuses the connection.
pub async fn postgres(url: &str) -> Result<StoreInspection, LeaseOpenError> {
    let reply = tokio::time::timeout(REPLY_TIMEOUT, store::postgres::inspect_store(url)).await;
    reply.map_err(|_| LeaseOpenError::NoAnswer)?
}

/// Compares the stores that `lease.store` names with the shards that were created. Those that do not answer are left
/// out.
///
/// # Errors
/// `Shard`; none of them answers.
pub async fn shards(config: &LeaseConfig, clock: &Clock) -> Result<(), LeaseOpenError> {
    // Without stores there is nothing to compare, so the address of `store` is not needed.
    if config.store.is_some() {
        let specs = crate::shards::specs("", config)?;
        Box::pin(crate::shards::compare(&specs, clock)).await?;
    }
    Ok(())
}

async fn open_read_only(path: &Path) -> Result<SqliteConnection, sqlx::Error> {
    read_only::read_only(path).connect().await
}
