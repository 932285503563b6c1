//! Reads the end of a lease from the database, without the server.

use sqlx::Connection as _;

use crate::support::Store;

impl Store {
    /// The columns `ended_how` and `audit_id` of a lease.
    pub(crate) async fn lease_ending(&self, lease: &str) -> (Option<String>, Option<String>) {
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
}
