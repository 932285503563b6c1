//! Reads the latest grants of all locks, for the token ledger.

use domain::detail::EventKind;
use domain::history::HistoryEvent;
use domain::names::{BackendName, OwnerId, Resource, Source};
use domain::token::FencingToken;

use super::History;
use crate::db::on_either;

type Row = (
    i64,
    String,
    String,
    String,
    Vec<u8>,
    Option<String>,
    Option<String>,
);

impl History {
    /// Grants of leases with a token, newest first.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn grants(&self, from: i64, until: i64, most: u32) -> Result<Vec<HistoryEvent>, sqlx::Error> {
        let select = "SELECT at, kind, backend, source, resource, owner_id, fencing_token FROM lock_events
            WHERE at >= $1 AND at < $2 AND kind IN ('acquired', 'reclaimed') AND fencing_token IS NOT NULL
            ORDER BY at DESC, id DESC LIMIT $3";
        let rows: Vec<Row> = on_either!(&self.db, Db, |pool| {
            let query = sqlx::query_as(select)
                .bind(from)
                .bind(until)
                .bind(i64::from(most));
            query.fetch_all(pool).await?
        });
        Ok(read(rows))
    }

    /// Times that nobody watched, oldest first, as far as they reach into the range.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn gaps(&self, from: i64, until: i64) -> Result<Vec<(i64, i64)>, sqlx::Error> {
        let select = "SELECT began, ended FROM history_gaps WHERE ended >= $1 AND began <= $2 ORDER BY began LIMIT 1000";
        Ok(on_either!(&self.db, Db, |pool| {
            sqlx::query_as(select)
                .bind(from)
                .bind(until)
                .fetch_all(pool)
                .await?
        }))
    }

    /// Since when anything is known: the oldest row.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn since(&self) -> Result<Option<i64>, sqlx::Error> {
        let select = "SELECT min(at) FROM lock_events";
        Ok(on_either!(&self.db, Db, |pool| {
            sqlx::query_scalar(select).fetch_one(pool).await?
        }))
    }
}

/// What a later version wrote and this one does not understand is left out.
fn read(rows: Vec<Row>) -> Vec<HistoryEvent> {
    let read = rows
        .into_iter()
        .filter_map(|(at, kind, backend, source, resource, owner, token)| {
            Some(HistoryEvent {
                at,
                kind: EventKind::parse(&kind)?,
                backend: BackendName::parse(&backend).ok()?,
                source: Source::parse(&source).ok()?,
                resource: Resource::from_bytes(&resource),
                owner: owner.map(OwnerId::new),
                token: token.and_then(|token| token.parse().ok()).map(FencingToken::new),
                ttl_ms: None,
                waiters: None,
                waited_ms: None,
                run: None,
                is_sampled: false,
            })
        });
    read.collect()
}
