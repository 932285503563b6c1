//! Sums out of the store: the numbers of all, and the histograms of the few that are looked at.

use std::collections::HashMap;

use domain::history::histogram::Histogram;
use domain::history::rollup::{Heavy, Rollup};
use domain::history::series::{PrefixSeries, Series, Span, Watched};
use domain::names::BackendName;
use sqlx::AssertSqlSafe;
use sqlx::Row as _;

use super::STEPS_S;
use crate::db::on_either;
use crate::history::History;

/// The longest sums that cells of this length are made of, in seconds.
fn step_of(span: &Span) -> i64 {
    let fits = |step: &&i64| span.cell_ms % (**step * 1_000) == 0;
    STEPS_S.iter().rev().find(fits).copied().unwrap_or(STEPS_S[0])
}

/// Added up here: sorting them by name for the store's own sums takes longer than all the rest.
const CELLS: &str =
    "SELECT backend, prefix, at, held_ms, waiting_ms, acquired, refused, expired, reclaimed, lost, rejected,
        unlocked, believers, holds_uncertain
    FROM history_rollups WHERE step = $1 AND at >= $2 AND at < $3";

const COVERAGE: &str =
    "SELECT backend, (at - $2) / $4 AS cell, CAST(sum(watched_ms) AS BIGINT), CAST(sum(waits_ms) AS BIGINT)
    FROM history_coverage WHERE step = $1 AND at >= $2 AND at < $3
    GROUP BY backend, (at - $2) / $4";

impl History {
    /// What happened by template and cell, without histograms. Oldest cell first; templates in no order.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn series(&self, span: Span) -> Result<Series, sqlx::Error> {
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
                for (place, sum) in sums.iter_mut().enumerate() {
                    *sum = u64::try_from(row.try_get::<i64, _>(3 + place)?).unwrap_or(0);
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
        Ok(Series {
            span,
            prefixes: found.into_values().collect(),
            backends: self.coverage(span).await?,
        })
    }

    async fn coverage(&self, span: Span) -> Result<Vec<Watched>, sqlx::Error> {
        let mut found: Vec<Watched> = Vec::new();
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
                let place = found.iter().position(|watched| watched.backend == name);
                let place = place.unwrap_or_else(|| {
                    found.push(Watched {
                        backend: name,
                        watched_ms: vec![0; span.cells],
                        waits_ms: vec![0; span.cells],
                    });
                    found.len() - 1
                });
                if cell < span.cells {
                    found[place].watched_ms[cell] = row.try_get(2)?;
                    found[place].waits_ms[cell] = row.try_get(3)?;
                }
            }
        });
        found.sort_by(|one, other| one.backend.cmp(&other.backend));
        Ok(found)
    }

    /// Adds histograms and names to those of `series` that `wanted` numbers.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn deepen(&self, series: &mut Series, wanted: &[usize]) -> Result<(), sqlx::Error> {
        let span = series.span;
        let names: HashMap<(String, String), usize> = wanted
            .iter()
            .filter_map(|place| series.prefixes.get(*place).map(|of| (of, *place)))
            .map(|(of, place)| ((of.backend.to_string(), of.prefix.clone()), place))
            .collect();
        if names.is_empty() {
            return Ok(());
        }
        let places: Vec<String> = (0..names.len())
            .map(|number| format!("(backend = ${} AND prefix = ${})", 4 + number * 2, 5 + number * 2))
            .collect();
        let select = format!(
            "SELECT backend, prefix, at, waits, holds, renewals, late, ttls, heavy FROM history_rollups
             WHERE step = $1 AND at >= $2 AND at < $3 AND ({})",
            places.join(" OR ")
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
                let Some((place, cell)) = names.get(&name).copied().zip(span.cell_of(row.try_get(2)?)) else {
                    continue;
                };
                let histogram = |bytes: Option<Vec<u8>>| {
                    bytes
                        .and_then(|bytes| Histogram::decode(&bytes))
                        .unwrap_or_default()
                };
                let deep = Rollup {
                    waits: histogram(row.try_get(3)?),
                    holds: histogram(row.try_get(4)?),
                    renewals: histogram(row.try_get(5)?),
                    late: histogram(row.try_get(6)?),
                    ttls: histogram(row.try_get(7)?),
                    heavy: heavy(row.try_get(8)?),
                    ..Rollup::default()
                };
                rows.push((place, cell, deep));
            }
        });
        for (place, cell, deep) in rows {
            let of = &mut series.prefixes[place];
            of.total.merge(&deep);
            of.cells[cell].merge(&deep);
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
        believers,
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
        believers,
        holds_uncertain,
        ..Rollup::default()
    }
}

fn heavy(names: Option<String>) -> Heavy {
    let names: Vec<(String, u64)> = names
        .and_then(|names| serde_json::from_str(&names).ok())
        .unwrap_or_default();
    let mut heavy = Heavy::default();
    for (name, ms) in names {
        heavy.add(&name, ms);
    }
    heavy
}
