//! What the SQL store keeps of leases in etcd: the id of this installation, made at the first start, which the keys carry
//! so that two installations never share a prefix; and the highest token floor, which a restored snapshot of etcd lacks.

use std::sync::Arc;
use std::time::Duration;

use config::LeaseStoreConfig;
use lease::LeaseService;
use runtime::db::{Db, DbError, on_either};
use runtime::{random, tasks};
use tokio_util::sync::CancellationToken;

const FLOOR_INTERVAL: Duration = Duration::from_secs(1);

/// Completes the configuration from the SQL store at this address.
///
/// # Errors
/// The store cannot be opened, or does not answer.
pub(crate) async fn complete(store: &str, etcd: &mut LeaseStoreConfig) -> Result<(), DbError> {
    let db = Db::open(store).await?;
    let read = async { Ok((read_or_create(&db).await?, read_floor(&db).await?)) };
    let read = read.await.map_err(DbError::Open);
    db.close().await;
    let (installation, known_floor) = read?;
    etcd.installation = Some(installation);
    etcd.known_floor = known_floor;
    Ok(())
}

/// Records the token floor whenever it has been raised, until `stop`.
pub(super) fn record_floor(db: &Db, leases: &Arc<LeaseService>, stop: &CancellationToken) {
    if leases.token_floor().is_none() {
        return;
    }
    let (db, leases) = (db.clone(), leases.clone());
    tasks::spawn_supervised("lease token floor", stop.clone(), move || {
        let (db, leases) = (db.clone(), leases.clone());
        async move {
            let mut recorded = 0;
            loop {
                if let Some(floor) = leases.token_floor().filter(|floor| *floor > recorded) {
                    match write_floor(&db, floor).await {
                        Ok(()) => recorded = floor,
                        Err(error) => {
                            tracing::warn!(%error, "the token floor could not be recorded: {error}")
                        }
                    }
                }
                tokio::time::sleep(FLOOR_INTERVAL).await;
            }
        }
    });
}

async fn read_floor(db: &Db) -> Result<u64, sqlx::Error> {
    let select = "SELECT CAST(value AS bigint) FROM settings WHERE key = 'lease_token_floor'";
    let floor: Option<i64> = on_either!(db, Db, |pool| sqlx::query_scalar(select)
        .fetch_optional(pool)
        .await?);
    Ok(floor.map_or(0, i64::cast_unsigned))
}

async fn write_floor(db: &Db, floor: u64) -> Result<(), sqlx::Error> {
    let write =
        "INSERT INTO settings (key, value) VALUES ('lease_token_floor', $1) ON CONFLICT (key) DO UPDATE
        SET value = excluded.value WHERE CAST(settings.value AS bigint) < CAST(excluded.value AS bigint)";
    on_either!(db, Db, |pool| {
        sqlx::query(write).bind(floor.to_string()).execute(pool).await?;
    });
    Ok(())
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
