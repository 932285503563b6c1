//! Counts of fencing rejections: statements that are the same on both stores.

use domain::lease::StoreTime;
use sqlx::{Database, Encode, Executor, FromRow, IntoArguments, Pool, Type};

use super::{RejectionCount, RejectionRange};

type RejectionCountTuple = (String, Option<String>, i64, Option<i64>, i64, i64, i64);

/// Seconds with rejections of one resource and owner that are read at once: the newest. Clients choose both names.
const COUNTS_MAX: i64 = 50_000;

/// The inner query uses an index to find the ids; the last row of each second is then read by
/// id.
const COUNTS: &str = "SELECT last.resource, last.owner_id, last.fencing_token, last.highest_token, seconds.at,
        seconds.older, seconds.times
    FROM (SELECT max(id) AS id, max(at) AS at, count(*) AS times,
            CAST(CASE WHEN fencing_token < highest_token THEN 1 ELSE 0 END AS BIGINT) AS older
        FROM fencing_rejections WHERE id > $1 AND id <= $2 AND at >= $3
        GROUP BY resource, owner_id, at / 1000, CASE WHEN fencing_token < highest_token THEN 1 ELSE 0 END) AS seconds
    JOIN fencing_rejections AS last ON last.id = seconds.id
    ORDER BY seconds.at DESC, seconds.id DESC LIMIT $4";

const LAST_BEFORE: &str = "SELECT id FROM fencing_rejections WHERE recorded_at < $1 ORDER BY id DESC LIMIT 1";

impl From<RejectionCountTuple> for RejectionCount {
    fn from((resource, owner, token, highest, at, older, times): RejectionCountTuple) -> Self {
        Self {
            resource,
            owner,
            token,
            highest,
            at: StoreTime::from_ms(at),
            is_older: older != 0,
            times: times.unsigned_abs(),
        }
    }
}

/// Ordered by time.
///
/// # Errors
/// The store does not answer.
pub(super) async fn counts<D>(
    readers: &Pool<D>,
    range: &RejectionRange,
) -> Result<Vec<RejectionCount>, sqlx::Error>
where
    D: Database,
    D::Arguments: IntoArguments<D>,
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
    for<'q> i64: Encode<'q, D> + Type<D>,
    for<'r> RejectionCountTuple: FromRow<'r, D::Row>,
{
    let query = sqlx::query_as(COUNTS)
        .bind(range.after)
        .bind(range.to)
        .bind(range.since.ms())
        .bind(COUNTS_MAX);
    let rows: Vec<RejectionCountTuple> = query.fetch_all(readers).await?;
    Ok(rows.into_iter().rev().map(RejectionCount::from).collect())
}

/// Id of the newest rejection recorded before a time of the store's clock; 0 without one.
///
/// # Errors
/// The store does not answer.
pub(super) async fn last_before<D>(readers: &Pool<D>, recorded: StoreTime) -> Result<i64, sqlx::Error>
where
    D: Database,
    D::Arguments: IntoArguments<D>,
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
    for<'q> i64: Encode<'q, D> + Type<D>,
    for<'r> (i64,): FromRow<'r, D::Row>,
{
    let query = sqlx::query_scalar(LAST_BEFORE).bind(recorded.ms());
    let id: Option<i64> = query.fetch_optional(readers).await?;
    Ok(id.unwrap_or(0))
}
