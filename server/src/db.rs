//! The SQL store of the console: people, unlocks, the audit record. SQLite beside the leases' file, or the same Postgres.
//!
//! Owns connecting and migrating, and the one way to run the same statement on either. What is stored is the affair of
//! the modules that own the tables. With SQLite this is a file of its own, so that no page slows a lease.

pub mod looking;
mod opening;
pub mod schema;
pub(crate) mod timed;

use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, PgPool, Postgres, Sqlite, SqlitePool, Transaction};
use thiserror::Error;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use self::timed::Timed;
use crate::tasks;

const CONNECTIONS_MAX: u32 = 4;
/// History on Postgres has its own connections: charts over months do not block sessions and audit.
const HISTORY_CONNECTIONS_MAX: u32 = 2;
/// An answer that takes longer is none: whoever asked is told that the store is unavailable.
const PATIENCE: Duration = Duration::from_millis(1_500);
const BUSY: Duration = Duration::from_millis(1_000);

/// Cheap to clone.
#[derive(Debug, Clone)]
pub enum Db {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

/// Several statements that hold together or not at all. Dropped without [`commit`](Tx::commit) it never was.
pub enum Tx {
    Sqlite(Transaction<'static, Sqlite>),
    Postgres(Transaction<'static, Postgres>),
}

#[derive(Debug, Error)]
pub enum DbError {
    #[error("the store is neither sqlite:path nor postgres://…")]
    BadUrl,
    #[error("there is no {}; `leasehold serve` makes it. Is `store` the right one, and is this the server's folder?", .0.display())]
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

/// Runs `$run` with `$on` as the pool or the connection of whichever store it is. The statement is one text for both:
/// `$1`-style parameters, and types that both have. It is measured, as an operation of the module's part of us; leaving it by
/// `?` counts as a failure, so nothing else leaves it.
macro_rules! on_either {
    ($db:expr, $kind:ident, |$on:ident| $run:expr) => {{
        const PART: &str = $crate::db::timed::part(module_path!());
        match $db {
            $crate::db::$kind::Sqlite($on) => {
                let timed = $crate::db::timed::Timed::begin($crate::db::timed::SQLITE, PART);
                let answer = $run;
                timed.came();
                answer
            }
            $crate::db::$kind::Postgres($on) => {
                let timed = $crate::db::timed::Timed::begin($crate::db::timed::POSTGRES, PART);
                let answer = $run;
                timed.came();
                answer
            }
        }
    }};
}
pub(crate) use on_either;

impl Db {
    /// Opens the console's store beside the leases of `store`, `sqlite:path` or `postgres://…`, with its tables up to
    /// date.
    ///
    /// # Errors
    /// See [`DbError`].
    pub async fn open(store: &str) -> Result<Self, DbError> {
        if store.starts_with("postgres://") || store.starts_with("postgresql://") {
            return Self::open_postgres(store).await;
        }
        let path = store.strip_prefix("sqlite:").ok_or(DbError::BadUrl)?;
        let path = path.strip_prefix("//").unwrap_or(path);
        // A record that is told to be written is on the disk.
        Self::open_sqlite(&console_file(Path::new(path)), SqliteSynchronous::Full).await
    }

    /// Where history is kept: with SQLite a file of its own beside the leases of `store`, otherwise the same store over
    /// connections of its own.
    ///
    /// # Errors
    /// See [`DbError`].
    pub async fn history(&self, store: &str) -> Result<Self, DbError> {
        match self {
            // Its tables are up to date: `self` was opened.
            Self::Postgres(_) => {
                let options = postgres_options(store)?;
                Self::pool_postgres(options, HISTORY_CONNECTIONS_MAX).await
            }
            Self::Sqlite(_) => {
                let path = store.strip_prefix("sqlite:").ok_or(DbError::BadUrl)?;
                let path = path.strip_prefix("//").unwrap_or(path);
                // Not synced at each commit, which would make leases wait for the disk: what a power cut takes is a gap
                // then, and told as one.
                Self::open_sqlite(&beside(Path::new(path), "history"), SqliteSynchronous::Normal).await
            }
        }
    }

    /// The same for a command beside the server: a file that is not there is a mistake and is not made.
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
            // `INSERT OR REPLACE` deletes without a delete trigger unless triggers are recursive.
            .pragma("recursive_triggers", "on")
            .busy_timeout(BUSY);
        let what = path.display().to_string();
        let mut first = opening::patiently(&what, async || options.connect().await).await?;
        schema::migrate_sqlite(&mut first).await?;
        first.close().await.map_err(DbError::Open)?;
        let pool = SqlitePoolOptions::new()
            .max_connections(CONNECTIONS_MAX)
            .acquire_timeout(PATIENCE)
            .connect_lazy_with(options);
        opening::patiently(&what, async || pool.acquire().await.map(drop)).await?;
        Ok(Self::Sqlite(pool))
    }

    async fn open_postgres(url: &str) -> Result<Self, DbError> {
        let options = postgres_options(url)?;
        let mut first = opening::patiently(&what(&options), async || options.connect().await).await?;
        // A migration may take longer than a page may: an index over a long record.
        let patient = "SET statement_timeout = '10min'; SET lock_timeout = '30s'";
        sqlx::raw_sql(patient)
            .execute(&mut first)
            .await
            .map_err(DbError::Open)?;
        schema::migrate_postgres(&mut first).await?;
        first.close().await.map_err(DbError::Open)?;
        Self::pool_postgres(options, CONNECTIONS_MAX).await
    }

    async fn pool_postgres(options: PgConnectOptions, connections_max: u32) -> Result<Self, DbError> {
        let what = what(&options);
        let pool = PgPoolOptions::new()
            .max_connections(connections_max)
            .acquire_timeout(PATIENCE)
            .connect_lazy_with(options);
        opening::patiently(&what, async || pool.acquire().await.map(drop)).await?;
        Ok(Self::Postgres(pool))
    }

    /// A transaction that writes. On SQLite it takes its turn at once: one that began by reading could not write later.
    ///
    /// A cancelled caller does not cancel `BEGIN`: the driver would return the connection to the pool without a rollback
    /// (launchbadge/sqlx#4385), and later writes on it would wait for a commit that does not come.
    ///
    /// # Errors
    /// The store does not answer in time.
    pub async fn begin(&self) -> Result<Tx, sqlx::Error> {
        let timed = Timed::begin(self.system(), "begin");
        let begun = match self {
            Self::Sqlite(pool) => Tx::Sqlite(pool.begin_with("BEGIN IMMEDIATE").await?),
            Self::Postgres(pool) => Tx::Postgres(begin_uncancelled(pool.clone()).await?),
        };
        timed.came();
        Ok(begun)
    }

    pub async fn close(&self) {
        match self {
            Self::Sqlite(pool) => pool.close().await,
            Self::Postgres(pool) => pool.close().await,
        }
    }

    const fn system(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => timed::SQLITE,
            Self::Postgres(_) => timed::POSTGRES,
        }
    }
}

fn postgres_options(url: &str) -> Result<PgConnectOptions, DbError> {
    let options = PgConnectOptions::from_str(url).map_err(|_| DbError::BadUrl)?;
    Ok(options.application_name("leasehold console").options([
        ("statement_timeout", "5s"),
        ("lock_timeout", "2s"),
        ("synchronous_commit", "on"),
    ]))
}

fn what(options: &PgConnectOptions) -> String {
    format!("Postgres on {}:{}", options.get_host(), options.get_port())
}

/// Begins in a task of its own. A transaction whose caller has gone is dropped there, which rolls it back.
async fn begin_uncancelled(pool: PgPool) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    let (sender, begun) = oneshot::channel();
    tasks::spawn("begin", CancellationToken::new(), async move {
        let _caller_gone = sender.send(pool.begin().await);
    });
    begun.await.unwrap_or(Err(sqlx::Error::WorkerCrashed))
}

impl Tx {
    /// # Errors
    /// It may or may not have happened.
    pub async fn commit(self) -> Result<(), sqlx::Error> {
        let timed = Timed::begin(self.system(), "commit");
        match self {
            Self::Sqlite(tx) => tx.commit().await?,
            Self::Postgres(tx) => tx.commit().await?,
        }
        timed.came();
        Ok(())
    }

    const fn system(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => timed::SQLITE,
            Self::Postgres(_) => timed::POSTGRES,
        }
    }
}

/// `leasehold.db` → `leasehold.console.db`
pub fn console_file(leases: &Path) -> PathBuf {
    beside(leases, "console")
}

/// `leasehold.db` → `leasehold.history.db`
pub fn history_file(leases: &Path) -> PathBuf {
    beside(leases, "history")
}

fn beside(leases: &Path, what: &str) -> PathBuf {
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
    fn the_consoles_file_lies_beside_the_leases() {
        // With an extension, without one, and with dots in the folder.
        let named = |path: &str| console_file(Path::new(path)).display().to_string();
        assert_eq!(named("leasehold.db"), "leasehold.console.db");
        assert_eq!(
            named("/var/lib/lease.hold/db"),
            "/var/lib/lease.hold/db.console.db"
        );
        assert_eq!(named("a.b.sqlite"), "a.b.console.sqlite");
    }
}
