//! Read-only access to a store, next to a server or while it is stopped: no migration, no write.

use std::path::Path;
use std::str::FromStr as _;
use std::time::Duration;

use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};

use super::{Db, DbError, console_file};

const BUSY_TIMEOUT: Duration = Duration::from_secs(1);
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// A file in use is read through its WAL; one at rest is opened immutable, because reading through a WAL would
/// create one.
pub fn read_only(path: &Path) -> SqliteConnectOptions {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let is_at_rest = !Path::new(&log).exists();
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .read_only(true)
        .immutable(is_at_rest)
        .busy_timeout(BUSY_TIMEOUT)
        .disable_statement_logging()
}

impl Db {
    /// The console's store, read-only; tables may be missing. `None` if no server has created its file yet.
    ///
    /// # Errors
    /// The URL is invalid. An unreachable server is detected by the first query.
    pub fn open_read_only(store: &str) -> Result<Option<Self>, DbError> {
        if let Some(path) = store.strip_prefix("sqlite:") {
            let file = console_file(Path::new(path.strip_prefix("//").unwrap_or(path)));
            let pool = SqlitePoolOptions::new()
                .max_connections(1)
                .acquire_timeout(ACQUIRE_TIMEOUT);
            return Ok(file
                .exists()
                .then(|| Self::Sqlite(pool.connect_lazy_with(read_only(&file)))));
        }
        let options = PgConnectOptions::from_str(store)
            .map_err(|_| DbError::BadUrl)?
            .application_name("leasehold doctor")
            .options([
                ("statement_timeout", "5s"),
                ("default_transaction_read_only", "on"),
            ]);
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(ACQUIRE_TIMEOUT);
        Ok(Some(Self::Postgres(pool.connect_lazy_with(options))))
    }
}
