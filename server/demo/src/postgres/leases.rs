//! Leases in the common `distributed_locks` table.

use std::time::Duration;

use domain::duration::millis;
use sqlx::PgPool;

use crate::fault::WorkloadError;
use crate::leases::Leases;
use crate::rng;

/// One statement. The row of the token counter is locked until the commit, so grants of one resource follow each
/// other in the order of their tokens. A refused attempt uses up a token: gaps are allowed, decreasing tokens are
/// not. The clock is read after the rows are locked (`clock_timestamp`, not `now`).
const ACQUIRE: &str = "
WITH counter AS (
    INSERT INTO fencing_counters AS c (resource, fencing_token) VALUES ($1, 1)
    ON CONFLICT (resource) DO UPDATE SET fencing_token = c.fencing_token + 1
    RETURNING fencing_token
)
INSERT INTO distributed_locks AS l
    (resource, owner_id, lease_id, fencing_token, expires_at, created_at, updated_at)
SELECT $1, $2, $3, fencing_token, clock_timestamp() + $4 * interval '1 ms', clock_timestamp(), clock_timestamp()
FROM counter
ON CONFLICT (resource) DO UPDATE SET
    owner_id = EXCLUDED.owner_id, lease_id = EXCLUDED.lease_id, fencing_token = EXCLUDED.fencing_token,
    expires_at = clock_timestamp() + $4 * interval '1 ms',
    created_at = clock_timestamp(), updated_at = clock_timestamp()
WHERE l.expires_at <= clock_timestamp()
RETURNING fencing_token";

const RENEW: &str = "
UPDATE distributed_locks
SET expires_at = clock_timestamp() + $3 * interval '1 ms', updated_at = clock_timestamp()
WHERE resource = $1 AND lease_id = $2 AND expires_at > clock_timestamp()";

const RELEASE: &str = "DELETE FROM distributed_locks WHERE resource = $1 AND lease_id = $2";

#[derive(Clone)]
pub(crate) struct TableLeases {
    pub(crate) pool: PgPool,
}

pub(crate) struct Row {
    resource: String,
    lease_id: String,
    ttl: Duration,
}

impl Leases for TableLeases {
    type Held = Row;

    async fn acquire(
        &self,
        resource: &str,
        owner: &str,
        ttl: Duration,
    ) -> Result<Option<Row>, WorkloadError> {
        let lease_id = rng::lease_id();
        let token: Option<i64> = sqlx::query_scalar(ACQUIRE)
            .bind(resource)
            .bind(owner)
            .bind(&lease_id)
            .bind(millis(ttl))
            .fetch_optional(&self.pool)
            .await?;
        Ok(token.map(|_| Row {
            resource: resource.to_owned(),
            lease_id,
            ttl,
        }))
    }

    async fn renew(&self, held: &Row) -> Result<bool, WorkloadError> {
        let renewed = sqlx::query(RENEW)
            .bind(&held.resource)
            .bind(&held.lease_id)
            .bind(millis(held.ttl))
            .execute(&self.pool);
        Ok(renewed.await?.rows_affected() == 1)
    }

    async fn release(&self, held: Row) -> Result<(), WorkloadError> {
        sqlx::query(RELEASE)
            .bind(&held.resource)
            .bind(&held.lease_id)
            .execute(&self.pool)
            .await?;
        Ok(())
    }
}
