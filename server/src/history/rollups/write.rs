//! Writes roll-ups: rows that have grown replace earlier values of the same process.

use domain::history::histogram::Histogram;
use domain::history::rollup::{MostWaited, Rollup};
use sqlx::AssertSqlSafe;

use super::aggregate::{Coverage, Gatherer, Growing, RollupKey, Stretch};
use crate::history::bulk_insert::{chunks, values};
use runtime::db::{Tx, on_either};

const COLUMNS: [&str; 22] = [
    "step_seconds",
    "at",
    "backend",
    "prefix",
    "process_id",
    "held_ms",
    "waiting_ms",
    "acquired",
    "refused",
    "expired",
    "reclaimed",
    "lost",
    "rejected",
    "unlocked",
    "dual_owners",
    "holds_uncertain",
    "waits",
    "holds",
    "renewals",
    "late",
    "ttls",
    "most_waited",
];
/// The first of them are the key of the row.
const KEYS: usize = 5;

impl Gatherer {
    pub(in crate::history) fn is_dirty(&self) -> bool {
        self.sums
            .values()
            .flat_map(|all| all.values())
            .any(|row| row.is_dirty)
    }

    pub(in crate::history) async fn write(&self, tx: &mut Tx) -> Result<(), sqlx::Error> {
        let mut rows: Vec<(&Stretch, &RollupKey, &Rollup)> = Vec::new();
        for (stretch, all) in &self.sums {
            let changed_rows = all.iter().filter(|(_, row)| row.is_dirty);
            rows.extend(changed_rows.map(|(key, row)| (stretch, key, &row.sum)));
        }
        for chunk in chunks(&rows) {
            self.upsert(tx, chunk).await?;
        }
        for (stretch, all) in &self.coverage {
            for (backend, coverage_row) in all.iter().filter(|(_, row)| row.is_dirty) {
                self.cover_row(tx, stretch, backend.as_str(), coverage_row)
                    .await?;
            }
        }
        Ok(())
    }

    /// Call after the commit of [`write`](Self::write).
    pub(in crate::history) fn mark_written(&mut self) {
        let sums = self.sums.values_mut().flat_map(|all| all.values_mut());
        sums.for_each(|row| row.is_dirty = false);
        let coverage = self.coverage.values_mut().flat_map(|all| all.values_mut());
        coverage.for_each(|row| row.is_dirty = false);
    }

    async fn upsert(&self, tx: &mut Tx, rows: &[(&Stretch, &RollupKey, &Rollup)]) -> Result<(), sqlx::Error> {
        let set: Vec<String> = COLUMNS[KEYS..]
            .iter()
            .map(|column| format!("{column} = excluded.{column}"))
            .collect();
        let statement = format!(
            "INSERT INTO history_rollups ({}) VALUES {}
             ON CONFLICT (step_seconds, at, backend, prefix, process_id) DO UPDATE SET {}",
            COLUMNS.join(", "),
            values(tx, rows.len(), COLUMNS.len()),
            set.join(", ")
        );
        on_either!(tx, Tx, |tx| {
            let mut query = sqlx::query(AssertSqlSafe(statement));
            for ((step, at), (backend, prefix), sum) in rows {
                query = query
                    .bind(step)
                    .bind(at)
                    .bind(backend.as_str())
                    .bind(&**prefix)
                    .bind(self.process_id.as_str());
                for number in counts(sum) {
                    query = query.bind(i64::try_from(number).unwrap_or(i64::MAX));
                }
                for histogram in [&sum.waits, &sum.holds, &sum.renewals, &sum.late, &sum.ttls] {
                    query = query.bind(bytes(histogram));
                }
                query = query.bind(names(&sum.most_waited));
            }
            query.execute(&mut **tx).await?.rows_affected()
        });
        Ok(())
    }

    async fn cover_row(
        &self,
        tx: &mut Tx,
        (step, at): &Stretch,
        backend: &str,
        growing: &Growing<Coverage>,
    ) -> Result<(), sqlx::Error> {
        let statement =
            "INSERT INTO history_coverage (step_seconds, at, backend, process_id, watched_ms, waits_ms)
            VALUES ($1, $2, $3, $4, $5, $6)
            ON CONFLICT (step_seconds, at, backend, process_id)
            DO UPDATE SET watched_ms = excluded.watched_ms, waits_ms = excluded.waits_ms";
        on_either!(tx, Tx, |tx| {
            let query = sqlx::query(statement)
                .bind(step)
                .bind(at)
                .bind(backend)
                .bind(self.process_id.as_str())
                .bind(growing.sum.watched_ms)
                .bind(growing.sum.waits_ms);
            query.execute(&mut **tx).await?.rows_affected()
        });
        Ok(())
    }
}

const fn counts(sum: &Rollup) -> [u64; 11] {
    [
        sum.held_ms,
        sum.waiting_ms,
        sum.acquired,
        sum.refused,
        sum.expired,
        sum.reclaimed,
        sum.lost,
        sum.rejected,
        sum.unlocked,
        sum.dual_owners,
        sum.holds_uncertain,
    ]
}

fn bytes(histogram: &Histogram) -> Option<Vec<u8>> {
    (!histogram.is_empty()).then(|| histogram.encode())
}

fn names(most_waited: &MostWaited) -> Option<String> {
    let names: Vec<(String, u64)> = most_waited
        .iter()
        .map(|(name, ms)| (crate::history::store::without_nul(name).into_owned(), ms))
        .collect();
    (!names.is_empty())
        .then(|| serde_json::to_string(&names).ok())
        .flatten()
}
