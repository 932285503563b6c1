//! A look at a store without serving it and without changing anything: for `leasehold doctor`.

use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};

use super::error::LeaseOpenError;
use super::store;
use crate::db::looking;
use crate::db::schema::{self, Standing};

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examined {
    pub standing: Standing,
    /// Why it would not keep what it confirms.
    pub not_durable: Option<String>,
    /// Why it would issue tokens again that are out already.
    pub rewound: Option<String>,
    /// Its own clock, or the last moment that it remembers.
    pub now: Option<DateTime<Utc>>,
    /// `PostgreSQL 15.8`; none for a file.
    pub version: Option<String>,
    /// Whether this role may change the tables.
    pub may_migrate: bool,
    /// None: a file, or a store without tables.
    pub audit_rights: Option<AuditRights>,
}

/// What the role that serves may do to rows of the audit log on Postgres.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditRights {
    /// It owns the table: triggers protect the rows, and it could drop them.
    Owner,
    /// It does not own the table, and may change or delete rows.
    Writer,
    /// It may read and add rows.
    Appender,
}

const PATIENCE: Duration = Duration::from_secs(5);

/// Looks at the file of leases; it must be there.
///
/// # Errors
/// It cannot be read, or is no store.
pub async fn sqlite(path: &Path) -> Result<Examined, LeaseOpenError> {
    let mut connection = look(path).await.map_err(LeaseOpenError::Store)?;
    let examined = store::sqlite::examine(&mut connection, path).await;
    let _closed = connection.close().await;
    examined.map_err(LeaseOpenError::Store)
}

/// The tables of any file of ours, without touching it.
///
/// # Errors
/// It cannot be read, or is no store.
pub async fn standing(path: &Path) -> Result<Standing, sqlx::Error> {
    let mut connection = look(path).await?;
    let standing = schema::standing_sqlite(&mut connection).await;
    let _closed = connection.close().await;
    standing
}

/// Looks at the store on Postgres.
///
/// # Errors
/// It does not answer, or refuses.
pub async fn postgres(url: &str) -> Result<Examined, LeaseOpenError> {
    let asked = tokio::time::timeout(PATIENCE, store::postgres::examine(url)).await;
    asked.map_err(|_| LeaseOpenError::NoAnswer)?
}

async fn look(path: &Path) -> Result<SqliteConnection, sqlx::Error> {
    looking::read_only(path).connect().await
}
