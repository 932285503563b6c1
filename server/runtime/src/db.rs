//! The SQL store of the console: users, unlocks, audit log. A SQLite file next to the lease store, or the same
//! Postgres.
//!
//! Owns connections, migrations, and the macro that runs one statement on either database. Tables belong to the
//! modules that use them. With SQLite this is a separate file, so that no page slows a lease.

mod from_row;
pub mod instrumented;
mod migrations;
pub mod read_only;
pub mod schema;
mod wait_ready;

use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, PgPool, Postgres, Sqlite, SqlitePool, Transaction};
use thiserror::Error;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

pub use self::from_row::from_row;
use self::instrumented::Timed;
use crate::tasks;

const CONNECTIONS_MAX: u32 = 4;
/// History on Postgres has its own connections: charts over months must not block sessions and audit.
const HISTORY_CONNECTIONS_MAX: u32 = 2;
/// Timeout for a connection of the pool, after which the store counts as unavailable.
const ACQUIRE_TIMEOUT: Duration = Duration::from_millis(1_500);
const BUSY_TIMEOUT: Duration = Duration::from_millis(1_000);

/// Cheap to clone.
#[derive(Debug, Clone)]
pub enum Db {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

/// A transaction. Rolled back when dropped without [`commit`](Tx::commit).
pub enum Tx {
    Sqlite(Transaction<'static, Sqlite>),
    Postgres(Transaction<'static, Postgres>),
}

#[derive(Debug, Error)]
pub enum DbError {
    #[error("the store is neither sqlite:path nor postgres://…")]
    BadUrl,
    #[error("{} does not exist; `leasehold serve` creates it. Is `store` the right one, and is this the server's \
        folder?", .0.display())]
    NoFile(PathBuf),
    #[error("cannot open the store: {0}")]
    Open(sqlx::Error),
    #[error("{what} did not open within {wait_s} s: {why}; is it up, and is this machine overloaded?")]
    Late {
        what: String,
        wait_s: u64,
        why: sqlx::Error,
    },
    #[error("cannot bring the store's tables up to date: {0}")]
    Migrate(#[from] schema::SchemaError),
}

/// Runs `$run` with `$on` as the pool or connection of either database. The statement text is shared: `$1`-style
/// parameters and types of both. Measured as an operation of the calling module's part; leaving the block with `?`
/// counts as a failure, so nothing else may leave it.
#[macro_export]
macro_rules! on_either {
    ($db:expr, $kind:ident, |$on:ident| $run:expr) => {{
        const PART: &str = $crate::db::instrumented::part(module_path!());
        match $db {
            $crate::db::$kind::Sqlite($on) => {
                let timed = $crate::db::instrumented::Timed::begin($crate::db::instrumented::SQLITE, PART);
                let answer = $run;
                timed.succeed();
                answer
            }
            $crate::db::$kind::Postgres($on) => {
                let timed = $crate::db::instrumented::Timed::begin($crate::db::instrumented::POSTGRES, PART);
                let answer = $run;
                timed.succeed();
                answer
            }
        }
    }};
}
pub use crate::on_either;

impl Db {
    /// Opens the console's store next to the lease store, `sqlite:path` or `postgres://…`, and migrates its tables.
    ///
    /// # Errors
    /// See [`DbError`].
    pub async fn open(store: &str) -> Result<Self, DbError> {
        if store.starts_with("postgres://") || store.starts_with("postgresql://") {
            return Self::open_postgres(store).await;
        }
        let path = store.strip_prefix("sqlite:").ok_or(DbError::BadUrl)?;
        let path = path.strip_prefix("//").unwrap_or(path);
        // An audit entry must be on disk when it is confirmed.
        Self::open_sqlite(&console_file(Path::new(path)), SqliteSynchronous::Full).await
    }

    /// The history database: a separate file next to the lease store with SQLite, otherwise the same database with
    /// its own connections.
    ///
    /// # Errors
    /// See [`DbError`].
    pub async fn history(&self, store: &str) -> Result<Self, DbError> {
        match self {
            // Its tables are migrated: `self` was opened.
            Self::Postgres(_) => {
                let options = postgres_options(store)?;
                Self::pool_postgres(options, HISTORY_CONNECTIONS_MAX).await
            }
            Self::Sqlite(_) => {
                let path = store.strip_prefix("sqlite:").ok_or(DbError::BadUrl)?;
                let path = path.strip_prefix("//").unwrap_or(path);
                // Without a sync per commit, which would delay leases: a power cut loses the last seconds, which
                // become a gap.
                Self::open_sqlite(
                    &sibling_file(Path::new(path), "history"),
                    SqliteSynchronous::Normal,
                )
                .await
            }
        }
    }

    /// For a command next to the server: a missing file is an error and is not created.
    ///
    /// # Errors
    /// See [`DbError`].
    pub async fn open_existing(store: &str) -> Result<Self, DbError> {
        if let Some(path) = store.strip_prefix("sqlite:") {
            let file = console_file(Path::new(path.strip_prefix("//").unwrap_or(path)));
            if !file.exists() {
                return Err(DbError::NoFile(file));
            }
        }
        Self::open(store).await
    }

    async fn open_sqlite(path: &Path, synchronous: SqliteSynchronous) -> Result<Self, DbError> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(synchronous)
            .foreign_keys(true)
            // `INSERT OR REPLACE` fires delete triggers only with recursive triggers.
            .pragma("recursive_triggers", "on")
            .busy_timeout(BUSY_TIMEOUT);
        let description = path.display().to_string();
        let mut first = wait_ready::retry(&description, async || options.connect().await).await?;
        schema::migrate_sqlite(&mut first).await?;
        first.close().await.map_err(DbError::Open)?;
        let pool = SqlitePoolOptions::new()
            .max_connections(CONNECTIONS_MAX)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_lazy_with(options);
        wait_ready::retry(&description, async || pool.acquire().await.map(drop)).await?;
        Ok(Self::Sqlite(pool))
    }

    async fn open_postgres(url: &str) -> Result<Self, DbError> {
        let options = postgres_options(url)?;
        let mut first =
            wait_ready::retry(&server_description(&options), async || options.connect().await).await?;
        // A migration may take longer than a query, for example for an index over a large table.
        let set_timeouts = "SET statement_timeout = '10min'; SET lock_timeout = '30s'";
        sqlx::raw_sql(set_timeouts)
            .execute(&mut first)
            .await
            .map_err(DbError::Open)?;
        schema::migrate_postgres(&mut first).await?;
        first.close().await.map_err(DbError::Open)?;
        Self::pool_postgres(options, CONNECTIONS_MAX).await
    }

    async fn pool_postgres(options: PgConnectOptions, connections_max: u32) -> Result<Self, DbError> {
        let description = server_description(&options);
        let pool = PgPoolOptions::new()
            .max_connections(connections_max)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_lazy_with(options);
        wait_ready::retry(&description, async || pool.acquire().await.map(drop)).await?;
        Ok(Self::Postgres(pool))
    }

    /// Begins a write transaction. On SQLite it takes the write lock immediately: one that began with a read could
    /// not upgrade.
    ///
    /// On Postgres, a cancelled caller does not cancel `BEGIN`: the driver would return the connection to the pool without a
    /// rollback (launchbadge/sqlx#4385), and later writes on it would wait for a commit that never comes.
    ///
    /// # Errors
    /// The store does not answer in time.
    pub async fn begin(&self) -> Result<Tx, sqlx::Error> {
        let timed = Timed::begin(self.system(), "begin");
        let transaction = match self {
            Self::Sqlite(pool) => Tx::Sqlite(pool.begin_with("BEGIN IMMEDIATE").await?),
            Self::Postgres(pool) => Tx::Postgres(begin_uncancelled(pool.clone()).await?),
        };
        timed.succeed();
        Ok(transaction)
    }

    pub async fn close(&self) {
        match self {
            Self::Sqlite(pool) => pool.close().await,
            Self::Postgres(pool) => pool.close().await,
        }
    }

    const fn system(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => instrumented::SQLITE,
            Self::Postgres(_) => instrumented::POSTGRES,
        }
    }
}

fn postgres_options(url: &str) -> Result<PgConnectOptions, DbError> {
    let options = PgConnectOptions::from_str(url).map_err(|_| DbError::BadUrl)?;
    Ok(options.application_name("leasehold console").options([
        ("statement_timeout", "5s"),
        ("lock_timeout", "2s"),
        // A server that is paused inside a transaction blocks the others no longer than this.
        ("idle_in_transaction_session_timeout", "5s"),
        ("synchronous_commit", "on"),
    ]))
}

fn server_description(options: &PgConnectOptions) -> String {
    format!("Postgres on {}:{}", options.get_host(), options.get_port())
}

/// Begins in a separate task. If the caller is gone, the transaction is dropped there and rolled back.
async fn begin_uncancelled(pool: PgPool) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    let (sender, receiver) = oneshot::channel();
    tasks::spawn("begin", CancellationToken::new(), async move {
        let _caller_gone = sender.send(pool.begin().await);
    });
    receiver.await.unwrap_or(Err(sqlx::Error::WorkerCrashed))
}

impl Tx {
    /// # Errors
    /// The outcome is unknown.
    pub async fn commit(self) -> Result<(), sqlx::Error> {
        let timed = Timed::begin(self.system(), "commit");
        match self {
            Self::Sqlite(tx) => tx.commit().await?,
            Self::Postgres(tx) => tx.commit().await?,
        }
        timed.succeed();
        Ok(())
    }

    const fn system(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => instrumented::SQLITE,
            Self::Postgres(_) => instrumented::POSTGRES,
        }
    }
}

/// `leasehold.db` → `leasehold.console.db`
pub fn console_file(leases: &Path) -> PathBuf {
    sibling_file(leases, "console")
}

/// `leasehold.db` → `leasehold.history.db`
pub fn history_file(leases: &Path) -> PathBuf {
    sibling_file(leases, "history")
}

fn sibling_file(leases: &Path, what: &str) -> PathBuf {
    let extension = leases.extension().unwrap_or(std::ffi::OsStr::new("db"));
    let mut name = std::ffi::OsString::from(what);
    name.push(".");
    name.push(extension);
    leases.with_extension(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn console_and_lease_files_share_a_folder() {
        // With an extension, without one, and with dots in the folder name.
        let console_path = |path: &str| console_file(Path::new(path)).display().to_string();
        assert_eq!(console_path("leasehold.db"), "leasehold.console.db");
        assert_eq!(
            console_path("/var/lib/lease.hold/db"),
            "/var/lib/lease.hold/db.console.db"
        );
        assert_eq!(console_path("a.b.sqlite"), "a.b.console.sqlite");
    }
}
