//! Deletes rows past their retention, a batch at a time, so that no write waits long for it.
//!
//! Each table's owner keeps one [`Janitor`] in its own background loop and calls it there: history and alerts while their
//! server leads, notifications on every server, because two that delete the same rows do no harm. The lease store prunes
//! in its own write path instead (`store.rs` of the lease crate), so that pruning keeps pace with the leases that end.

use std::time::Duration;

use domain::duration::millis;
use domain::tick::Tick;

use runtime::db::{Db, on_either};

/// When the rows of one owner are next deleted.
pub(crate) struct Janitor {
    what: &'static str,
    every: Duration,
    finished: Option<Tick>,
}

impl Janitor {
    /// `what` names the rows in the log.
    pub(crate) const fn new(what: &'static str, every: Duration) -> Self {
        Self {
            what,
            every,
            finished: None,
        }
    }

    /// Deletes one batch when it is due: at first, again at the next call while `delete` answers that there may be more
    /// rows, and otherwise after the interval. A failure is logged and tried again after the interval.
    pub(crate) async fn run(&mut self, now: Tick, delete: impl Future<Output = Result<bool, sqlx::Error>>) {
        let is_due = |finished| now.since(finished) >= millis(self.every);
        if !self.finished.is_none_or(is_due) {
            return;
        }
        match delete.await {
            Ok(true) => {}
            Ok(false) => self.finished = Some(now),
            Err(error) => {
                tracing::warn!("old {} cannot be deleted: {error}", self.what);
                self.finished = Some(now);
            }
        }
    }
}

/// Runs a `DELETE` with `values` as `$1`, `$2`, …, of which the statement uses the last one as its `LIMIT`. Whether it
/// deleted as many rows, so that there may be more.
pub(crate) async fn delete_batch(
    db: &Db,
    statement: &'static str,
    values: &[i64],
) -> Result<bool, sqlx::Error> {
    let deleted = on_either!(db, Db, |pool| {
        let query = sqlx::query(statement);
        let query = values.iter().fold(query, |query, value| query.bind(*value));
        query.execute(pool).await?.rows_affected()
    });
    let limit = values.last().map_or(0, |limit| limit.unsigned_abs());
    Ok(deleted >= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn deletes(janitor: &mut Janitor, at_ms: i64, result: Result<bool, sqlx::Error>) -> bool {
        let mut has_run = false;
        let delete = async {
            has_run = true;
            result
        };
        janitor.run(Tick(at_ms), delete).await;
        has_run
    }

    #[tokio::test]
    async fn a_janitor_rests_only_when_nothing_is_left_or_it_fails() {
        let mut janitor = Janitor::new("rows", Duration::from_millis(100));
        assert!(deletes(&mut janitor, 5, Ok(true)).await);
        assert!(deletes(&mut janitor, 6, Ok(false)).await);
        assert!(!deletes(&mut janitor, 105, Ok(false)).await);
        assert!(deletes(&mut janitor, 106, Err(sqlx::Error::PoolTimedOut)).await);
        assert!(!deletes(&mut janitor, 107, Ok(false)).await);
        assert!(deletes(&mut janitor, 206, Ok(false)).await);
    }
}
