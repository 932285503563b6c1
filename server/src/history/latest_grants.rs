//! Reads the latest grants of all locks, for fencing rejections.

use domain::history::HistoryEvent;
use domain::lease::NameRange;
use domain::lock_detail::EventKind;
use domain::names::{BackendName, OwnerId, Resource, Source};
use domain::token::FencingToken;

use super::History;
use runtime::db::on_either;

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
    /// Grants with a token, newest first. `places`: only these ranges of names on these backends; `None`: all.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn grants(
        &self,
        from: i64,
        until: i64,
        places: Option<&[(BackendName, NameRange)]>,
        most: u32,
    ) -> Result<Vec<HistoryEvent>, sqlx::Error> {
        let Some(places) = places else {
            return Ok(read(self.grants_of((from, until), None, most).await?));
        };
        let mut rows = Vec::new();
        for place in places {
            rows.extend(self.grants_of((from, until), Some(place), most).await?);
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row.0));
        rows.truncate(most as usize);
        Ok(read(rows))
    }

    async fn grants_of(
        &self,
        (from, until): (i64, i64),
        place: Option<&(BackendName, NameRange)>,
        most: u32,
    ) -> Result<Vec<Row>, sqlx::Error> {
        let all = "SELECT at, kind, backend, source, resource, owner_id, fencing_token FROM lock_events
            WHERE at >= $1 AND at < $2 AND kind IN ('acquired', 'reclaimed', 'share_acquired') AND fencing_token IS NOT NULL
            ORDER BY at DESC, id DESC LIMIT $3";
        let within = "SELECT at, kind, backend, source, resource, owner_id, fencing_token FROM lock_events
            WHERE at >= $1 AND at < $2 AND kind IN ('acquired', 'reclaimed', 'share_acquired') AND fencing_token IS NOT NULL
            AND backend = $4 AND resource >= $5 AND resource < $6
            ORDER BY at DESC, id DESC LIMIT $3";
        Ok(on_either!(&self.db, Db, |pool| {
            let query = sqlx::query_as(if place.is_some() { within } else { all });
            let query = query.bind(from).bind(until).bind(i64::from(most));
            match place {
                None => query.fetch_all(pool).await?,
                Some((backend, names)) => {
                    let query = query.bind(backend.as_str()).bind(names.from.as_bytes());
                    // Upper bound: no name begins like this.
                    let end = names.to.as_deref().map_or(&[0xff; 8][..], str::as_bytes);
                    let query = query.bind(end);
                    query.fetch_all(pool).await?
                }
            }
        }))
    }

    /// Gaps of everything that overlap the range, oldest first.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn gaps(&self, from: i64, until: i64) -> Result<Vec<(i64, i64)>, sqlx::Error> {
        let select = "SELECT started_at, ended_at FROM history_gaps
            WHERE ended_at >= $1 AND started_at <= $2 AND backend IS NULL ORDER BY started_at LIMIT 1000";
        Ok(on_either!(&self.db, Db, |pool| {
            sqlx::query_as(select)
                .bind(from)
                .bind(until)
                .fetch_all(pool)
                .await?
        }))
    }

    /// Begin of the recorded history: the oldest event or the oldest observed minute.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn since(&self) -> Result<Option<i64>, sqlx::Error> {
        let select = "SELECT min(at) FROM (SELECT min(at) AS at FROM lock_events
            UNION ALL SELECT min(at) FROM history_coverage WHERE step_seconds = 60) AS oldest";
        Ok(on_either!(&self.db, Db, |pool| {
            sqlx::query_scalar(select).fetch_one(pool).await?
        }))
    }
}

/// Rows of a newer version are skipped.
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
                stale_after_ms: None,
                not_before: None,
                waiters: None,
                waited_ms: None,
                run: None,
                is_sampled: false,
            })
        });
    read.collect()
}
