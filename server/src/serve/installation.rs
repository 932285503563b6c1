//! Facts in the SQL store about the stores of `lease.store`: the id of this installation, created at the first start and
//! also written to those stores, so that two installations never share one; and the highest token floor of each etcd,
//! which a restored snapshot of etcd lacks.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use config::LeaseStores;
use lease::{LeaseConfig, LeaseService, ShardIndex};
use runtime::db::{Db, DbError, on_either};
use runtime::{random, tasks};
use tokio_util::sync::CancellationToken;

const FLOOR_INTERVAL: Duration = Duration::from_secs(1);

/// Completes the stores of `lease.store`, if there are any, from the SQL store at this address.
///
/// # Errors
/// The store cannot be opened, or does not answer.
pub(crate) async fn complete(store: &str, config: &mut LeaseConfig) -> Result<(), DbError> {
    let Some(stores) = &mut config.store else {
        return Ok(());
    };
    let db = Db::open(store).await?;
    let completed = complete_from(&db, stores).await.map_err(DbError::Open);
    db.close().await;
    completed
}

async fn complete_from(db: &Db, stores: &mut LeaseStores) -> Result<(), sqlx::Error> {
    stores.set_installation(&read_or_create(db).await?);
    if let LeaseStores::Etcd(shards) = stores {
        for (index, shard) in (0..).zip(shards) {
            shard.known_floor = read_floor(db, ShardIndex::new(index)).await?;
        }
    }
    Ok(())
}

/// Records the token floor of each shard whenever it has been raised, until `stop`.
pub(super) fn record_floors(db: &Db, leases: &Arc<LeaseService>, stop: &CancellationToken) {
    if leases.token_floors().is_empty() {
        return;
    }
    let (db, leases) = (db.clone(), leases.clone());
    tasks::spawn_supervised("lease token floor", stop.clone(), move || {
        let (db, leases) = (db.clone(), leases.clone());
        async move {
            let mut recorded: HashMap<ShardIndex, u64> = HashMap::new();
            loop {
                for (shard, floor) in leases.token_floors() {
                    if floor <= recorded.get(&shard).copied().unwrap_or(0) {
                        continue;
                    }
                    match write_floor(&db, shard, floor).await {
                        Ok(()) => {
                            recorded.insert(shard, floor);
                        }
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

/// Each shard has a floor of its own: by that of another one it would count as restored, and raise its tokens.
fn floor_key(shard: ShardIndex) -> String {
    format!("lease_token_floor_{shard}")
}

async fn read_floor(db: &Db, shard: ShardIndex) -> Result<u64, sqlx::Error> {
    let select = "SELECT CAST(value AS bigint) FROM settings WHERE key = $1";
    let floor: Option<i64> = on_either!(db, Db, |pool| sqlx::query_scalar(select)
        .bind(floor_key(shard))
        .fetch_optional(pool)
        .await?);
    Ok(floor.map_or(0, i64::cast_unsigned))
}

async fn write_floor(db: &Db, shard: ShardIndex, floor: u64) -> Result<(), sqlx::Error> {
    let write = "INSERT INTO settings (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE
        SET value = excluded.value WHERE CAST(settings.value AS bigint) < CAST(excluded.value AS bigint)";
    on_either!(db, Db, |pool| {
        let write = sqlx::query(write).bind(floor_key(shard));
        write.bind(floor.to_string()).execute(pool).await?;
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
