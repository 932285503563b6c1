//! Where a server's data is: a file in a temporary folder, or a Postgres of its own.

use ::testkit::{Postgres, PostgresOptions, Throwaway};
use runtime::db::console_file;
use sqlx::AssertSqlSafe;

/// Outlives the servers on it; removed on drop.
pub(crate) struct Store {
    pub(crate) url: String,
    _postgres: Option<Postgres>,
    folder: tempfile::TempDir,
}

impl Store {
    pub(crate) fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            url: format!("sqlite:{}", folder.path().join("leasehold.db").display()),
            _postgres: None,
            folder,
        }
    }

    pub(crate) async fn postgres() -> Self {
        let options = PostgresOptions {
            fast: true,
            ..Default::default()
        };
        let postgres = Throwaway::postgres(options).await.unwrap();
        Self {
            url: postgres.superuser_url(),
            _postgres: Some(postgres),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// The store at this address, which another process runs.
    pub(crate) fn at(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            _postgres: None,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// The same for another server; it is gone with this one.
    pub(crate) fn shared(&self) -> Self {
        Self::at(&self.url)
    }

    pub(crate) fn is_postgres(&self) -> bool {
        !self.url.starts_with("sqlite:")
    }

    /// On SQLite a server owns the unlocks that the one before it left open.
    pub(crate) fn is_sqlite(&self) -> bool {
        !self.is_postgres()
    }

    /// Where users, sessions and the audit log are.
    pub(crate) fn console_url(&self) -> String {
        match self.url.strip_prefix("sqlite:") {
            Some(file) => format!("sqlite:{}", console_file(file.as_ref()).display()),
            None => self.url.clone(),
        }
    }

    /// Runs statements directly on the store, to age rows or to inject a fault.
    pub(crate) async fn sql(&self, statements: &str) {
        let statements = AssertSqlSafe(statements.to_owned());
        if self.is_postgres() {
            let pool = sqlx::PgPool::connect(&self.url).await.unwrap();
            sqlx::raw_sql(statements).execute(&pool).await.unwrap();
        } else {
            let pool = sqlx::SqlitePool::connect(&self.console_url()).await.unwrap();
            sqlx::raw_sql(statements).execute(&pool).await.unwrap();
        }
    }

    /// Empty, but for the files of a store on SQLite.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }
}
