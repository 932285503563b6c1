//! A throwaway store of a guarded server: what stands in it, and what is done to it past the server.

use std::ops::Deref;

use leasehold::db::console_file;
use sqlx::{AssertSqlSafe, Connection as _};

use crate::support::store::Store;

/// Where leases, people and the record are; outlives the servers on it.
pub(crate) struct Home(Store);

impl Deref for Home {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.0
    }
}

impl Home {
    pub(crate) fn sqlite() -> Self {
        Self(Store::sqlite())
    }

    pub(crate) async fn postgres() -> Self {
        Self(Store::postgres().await)
    }

    /// What a server before has left open is nobody else's.
    pub(crate) const fn is_of_one_server(&self) -> bool {
        !self.0.is_postgres()
    }

    /// The console's own file, where there is one.
    pub(crate) fn console(&self) -> String {
        let file = self.url.strip_prefix("sqlite:").unwrap();
        format!("sqlite:{}", console_file(file.as_ref()).display())
    }

    /// How a lease ended and under which record, as its table says.
    pub(crate) async fn ending(&self, lease: &str) -> (Option<String>, Option<String>) {
        let select = "SELECT ended_how, audit_id FROM leases WHERE lease_id = $1";
        if self.is_postgres() {
            let mut store = sqlx::PgConnection::connect(&self.url).await.unwrap();
            let query = sqlx::query_as(select).bind(lease);
            query.fetch_one(&mut store).await.unwrap()
        } else {
            let pool = sqlx::SqlitePool::connect(&self.url).await.unwrap();
            let query = sqlx::query_as(select).bind(lease);
            query.fetch_one(&pool).await.unwrap()
        }
    }

    /// One statement past the server: what an hour does, or a fault.
    pub(crate) async fn sql(&self, statement: &str) {
        let statement = AssertSqlSafe(statement.to_owned());
        if self.is_postgres() {
            let pool = sqlx::PgPool::connect(&self.url).await.unwrap();
            sqlx::raw_sql(statement).execute(&pool).await.unwrap();
        } else {
            let pool = sqlx::SqlitePool::connect(&self.console()).await.unwrap();
            sqlx::raw_sql(statement).execute(&pool).await.unwrap();
        }
    }
}
