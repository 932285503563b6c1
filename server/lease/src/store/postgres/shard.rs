//! The identity of a Postgres database as a shard: read before it is opened, written when it is created.

use sqlx::ConnectOptions as _;
use sqlx::postgres::PgConnection;

use super::open::options;
use crate::error::LeaseOpenError;
use crate::shards::{FoundShard, ShardError, ShardIdentity, ShardIndex};

/// Reads the database without changing it.
///
/// # Errors
/// The server does not answer or refuses the connection.
pub(crate) async fn find_shard(url: &str) -> Result<FoundShard, LeaseOpenError> {
    let options = options(url)?.options([("default_transaction_read_only", "on")]);
    let mut connection = tokio::time::timeout(super::REPLY_TIMEOUT, options.connect())
        .await
        .map_err(|_| LeaseOpenError::NoAnswer)?
        .map_err(LeaseOpenError::Store)?;
    let found = find(&mut connection).await.map_err(LeaseOpenError::Store)?;
    let _closed = sqlx::Connection::close(connection).await;
    Ok(found)
}

async fn find(connection: &mut PgConnection) -> Result<FoundShard, sqlx::Error> {
    let read = "SELECT to_regclass('resource_tokens') IS NOT NULL, to_regclass('lease_shard') IS NOT NULL";
    let (has_counters, has_identity): (bool, bool) = sqlx::query_as(read).fetch_one(&mut *connection).await?;
    let has_tokens = match has_counters {
        true => {
            let issued = "SELECT EXISTS (SELECT FROM resource_tokens WHERE last_token > 0)";
            sqlx::query_scalar(issued).fetch_one(&mut *connection).await?
        }
        false => false,
    };
    let identity = match has_identity {
        true => read_identity(connection).await?,
        false => None,
    };
    Ok(FoundShard { identity, has_tokens })
}

async fn read_identity(connection: &mut PgConnection) -> Result<Option<ShardIdentity>, sqlx::Error> {
    let read = "SELECT installation_id, shard_index, shard_count, name_hash FROM lease_shard";
    let row: Option<(String, i32, i32, String)> = sqlx::query_as(read).fetch_optional(connection).await?;
    let number = |number: i32| u32::try_from(number).unwrap_or(u32::MAX);
    Ok(row.map(|(installation, index, shards, hash)| ShardIdentity {
        installation,
        index: ShardIndex::new(number(index)),
        shards: number(shards),
        hash,
    }))
}

/// Writes the identity of a new shard, and compares that of an existing one: another server may have created it meanwhile.
/// A database that is opened as `store` itself is no shard, or the only one.
///
/// # Errors
/// See [`ShardError`]; the server does not answer.
pub(super) async fn write_identity(
    connection: &mut PgConnection,
    identity: Option<(&ShardIdentity, &str)>,
) -> Result<(), LeaseOpenError> {
    let Some((identity, address)) = identity else {
        let stored = read_identity(connection).await.map_err(LeaseOpenError::Store)?;
        return match stored.filter(|stored| stored.shards > 1) {
            Some(stored) => Err(LeaseOpenError::Shard(sharded_store_error(&stored))),
            None => Ok(()),
        };
    };
    let write = "INSERT INTO lease_shard (only_row, installation_id, shard_index, shard_count, name_hash)
        VALUES (1, $1, $2, $3, $4) ON CONFLICT DO NOTHING";
    sqlx::query(write)
        .bind(&identity.installation)
        .bind(identity.index.get().cast_signed())
        .bind(identity.shards.cast_signed())
        .bind(&identity.hash)
        .execute(&mut *connection)
        .await
        .map_err(LeaseOpenError::Store)?;
    let stored = read_identity(connection).await.map_err(LeaseOpenError::Store)?;
    match stored {
        Some(stored) => Ok(identity.check(&stored, address)?),
        None => Err(LeaseOpenError::Store(sqlx::Error::RowNotFound)),
    }
}

fn sharded_store_error(stored: &ShardIdentity) -> ShardError {
    ShardError {
        reason: format!(
            "the database of `store` holds the leases of shard {} of {} shards",
            stored.index, stored.shards
        ),
        remedy: "Name all shards in lease.store, in the order in which they were created, or use another database as \
                 `store`"
            .to_owned(),
    }
}
