//! Reads roll-ups: numbers of all templates, and histograms of the selected ones.

use std::collections::HashMap;

use domain::access::Visible;
use domain::contention::AllLocks;
use domain::history::histogram::Histogram;
use domain::history::rollup::{MostWaited, Rollup};
use domain::history::series::{HistorySeries, HistorySpan, PrefixSeries, WatchedSpans, is_visible};
use domain::names::BackendName;
use sqlx::AssertSqlSafe;
use sqlx::Row as _;

use super::STEPS_S;
use crate::history::History;
use runtime::db::on_either;

/// The longest step that divides cells of this length, in seconds.
fn step_of(span: &HistorySpan) -> i64 {
    let fits = |step: &&i64| span.cell_ms % (**step * 1_000) == 0;
    STEPS_S.iter().rev().find(fits).copied().unwrap_or(STEPS_S[0])
}

/// Aggregated here: grouping by name in the store would need a sort that costs more than the rest.
const CELLS: &str =
    "SELECT backend, prefix, at, held_ms, waiting_ms, acquired, refused, expired, reclaimed, lost, rejected,
        unlocked, dual_owners, holds_uncertain
    FROM history_rollups WHERE step_seconds = $1 AND at >= $2 AND at < $3";

const DURATIONS: &str = "SELECT backend, prefix, holds, waits, holds_uncertain FROM history_rollups
    WHERE step_seconds = $1 AND at >= $2 AND at < $3";

const COVERAGE: &str =
    "SELECT backend, (at - $2) / $4 AS cell, CAST(sum(watched_ms) AS BIGINT), CAST(sum(waits_ms) AS BIGINT)
    FROM history_coverage WHERE step_seconds = $1 AND at >= $2 AND at < $3
    GROUP BY backend, (at - $2) / $4";

impl History {
    /// Numbers by template and cell, without histograms. Oldest cell first; templates unordered.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn series(&self, span: HistorySpan) -> Result<HistorySeries, sqlx::Error> {
        let mut found: HashMap<(String, String), PrefixSeries> = HashMap::new();
        on_either!(&self.db, Db, |pool| {
            let query = sqlx::query(CELLS)
                .bind(step_of(&span))
                .bind(span.from)
                .bind(span.to());
            for row in query.fetch_all(pool).await? {
                let (backend, prefix): (String, String) = (row.try_get(0)?, row.try_get(1)?);
                let cell = span.cell_of(row.try_get(2)?);
                let Some((cell, name)) = cell.zip(BackendName::parse(&backend).ok()) else {
                    continue;
                };
                let mut sums = [0_u64; 11];
                for (column, sum) in sums.iter_mut().enumerate() {
                    *sum = u64::try_from(row.try_get::<i64, _>(3 + column)?).unwrap_or(0);
                }
                let series = found
                    .entry((backend, prefix.clone()))
                    .or_insert_with(|| PrefixSeries {
                        backend: name,
                        prefix,
                        cells: vec![Rollup::default(); span.cells],
                        total: Rollup::default(),
                    });
                let sum = counts(sums);
                series.total.merge(&sum);
                series.cells[cell].merge(&sum);
            }
        });
        Ok(HistorySeries {
            span,
            prefixes: found.into_values().collect(),
            backends: self.coverage(span).await?,
        })
    }

    async fn coverage(&self, span: HistorySpan) -> Result<Vec<WatchedSpans>, sqlx::Error> {
        let mut found: Vec<WatchedSpans> = Vec::new();
        on_either!(&self.db, Db, |pool| {
            let query = sqlx::query(COVERAGE)
                .bind(step_of(&span))
                .bind(span.from)
                .bind(span.to())
                .bind(span.cell_ms);
            for row in query.fetch_all(pool).await? {
                let (backend, cell): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
                let (Ok(cell), Ok(name)) = (usize::try_from(cell), BackendName::parse(&backend)) else {
                    continue;
                };
                let index = found.iter().position(|watched| watched.backend == name);
                let index = index.unwrap_or_else(|| {
                    found.push(WatchedSpans {
                        backend: name,
                        watched_ms: vec![0; span.cells],
                        waits_ms: vec![0; span.cells],
                    });
                    found.len() - 1
                });
                if cell < span.cells {
                    found[index].watched_ms[cell] = row.try_get(2)?;
                    found[index].waits_ms[cell] = row.try_get(3)?;
                }
            }
        });
        found.sort_by(|left, right| left.backend.cmp(&right.backend));
        Ok(found)
    }

    /// Hold and wait times of all templates that a reader may see.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn durations(&self, span: HistorySpan, visible: &Visible) -> Result<AllLocks, sqlx::Error> {
        let mut all = AllLocks::default();
        on_either!(&self.db, Db, |pool| {
            let query = sqlx::query(DURATIONS)
                .bind(step_of(&span))
                .bind(span.from)
                .bind(span.to());
            for row in query.fetch_all(pool).await? {
                let (backend, prefix): (String, String) = (row.try_get(0)?, row.try_get(1)?);
                let backend = BackendName::parse(&backend);
                if !backend.is_ok_and(|backend| is_visible(visible, &backend, &prefix)) {
                    continue;
                }
                let histogram = |bytes: Option<Vec<u8>>| bytes.and_then(|bytes| Histogram::decode(&bytes));
                let (holds, waits) = (histogram(row.try_get(2)?), histogram(row.try_get(3)?));
                all.holds.merge(&holds.unwrap_or_default());
                all.waits.merge(&waits.unwrap_or_default());
                let uncertain = u64::try_from(row.try_get::<i64, _>(4)?).unwrap_or(0);
                all.holds_uncertain = all.holds_uncertain.saturating_add(uncertain);
            }
        });
        Ok(all)
    }

    /// Adds histograms and names for the entries of `series` with these indexes.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn load_histograms(
        &self,
        series: &mut HistorySeries,
        indexes: &[usize],
    ) -> Result<(), sqlx::Error> {
        let span = series.span;
        let names: HashMap<(String, String), usize> = indexes
            .iter()
            .filter_map(|index| series.prefixes.get(*index).map(|series| (series, *index)))
            .map(|(series, index)| ((series.backend.to_string(), series.prefix.clone()), index))
            .collect();
        if names.is_empty() {
            return Ok(());
        }
        let conditions: Vec<String> = (0..names.len())
            .map(|number| format!("(backend = ${} AND prefix = ${})", 4 + number * 2, 5 + number * 2))
            .collect();
        let select = format!(
            "SELECT backend, prefix, at, waits, holds, renewals, late, ttls, most_waited FROM history_rollups
             WHERE step_seconds = $1 AND at >= $2 AND at < $3 AND ({})",
            conditions.join(" OR ")
        );
        let mut rows: Vec<(usize, usize, Rollup)> = Vec::new();
        on_either!(&self.db, Db, |pool| {
            let mut query = sqlx::query(AssertSqlSafe(select))
                .bind(step_of(&span))
                .bind(span.from)
                .bind(span.to());
            for (backend, prefix) in names.keys() {
                query = query.bind(backend).bind(prefix);
            }
            for row in query.fetch_all(pool).await? {
                let name: (String, String) = (row.try_get(0)?, row.try_get(1)?);
                let Some((index, cell)) = names.get(&name).copied().zip(span.cell_of(row.try_get(2)?)) else {
                    continue;
                };
                let histogram = |bytes: Option<Vec<u8>>| {
                    bytes
                        .and_then(|bytes| Histogram::decode(&bytes))
                        .unwrap_or_default()
                };
                let rollup = Rollup {
                    waits: histogram(row.try_get(3)?),
                    holds: histogram(row.try_get(4)?),
                    renewals: histogram(row.try_get(5)?),
                    late: histogram(row.try_get(6)?),
                    ttls: histogram(row.try_get(7)?),
                    most_waited: most_waited(row.try_get(8)?),
                    ..Rollup::default()
                };
                rows.push((index, cell, rollup));
            }
        });
        for (index, cell, rollup) in rows {
            let series = &mut series.prefixes[index];
            series.total.merge(&rollup);
            series.cells[cell].merge(&rollup);
        }
        Ok(())
    }
}

fn counts(sums: [u64; 11]) -> Rollup {
    let [
        held_ms,
        waiting_ms,
        acquired,
        refused,
        expired,
        reclaimed,
        lost,
        rejected,
        unlocked,
        dual_owners,
        holds_uncertain,
    ] = sums;
    Rollup {
        held_ms,
        waiting_ms,
        acquired,
        refused,
        expired,
        reclaimed,
        lost,
        rejected,
        unlocked,
        dual_owners,
        holds_uncertain,
        ..Rollup::default()
    }
}

fn most_waited(names: Option<String>) -> MostWaited {
    let names: Vec<(String, u64)> = names
        .and_then(|names| serde_json::from_str(&names).ok())
        .unwrap_or_default();
    let mut most_waited = MostWaited::default();
    for (name, ms) in names {
        most_waited.add(&name, ms);
    }
    most_waited
}
