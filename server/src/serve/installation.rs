//! The id of this installation: made at the first start and kept in the SQL store. The keys of leases in etcd carry it,
//! so that two installations never share a prefix.

use runtime::db::{Db, DbError, on_either};
use runtime::random;

/// # Errors
/// The store cannot be opened, or does not answer.
pub(super) async fn installation_id(store: &str) -> Result<String, DbError> {
    let db = Db::open(store).await?;
    let id = read_or_create(&db).await.map_err(DbError::Open);
    db.close().await;
    id
}

async fn read_or_create(db: &Db) -> Result<String, sqlx::Error> {
    let insert = "INSERT INTO settings (key, value) VALUES ('installation', $1) ON CONFLICT (key) DO NOTHING";
    let select = "SELECT value FROM settings WHERE key = 'installation'";
    let id: String = on_either!(db, Db, |pool| {
        sqlx::query(insert).bind(random::id()).execute(pool).await?;
        sqlx::query_scalar(select).fetch_one(pool).await?
    });
    Ok(id)
}
