//! Contention: wait and hold times of prefixes over a span, from roll-ups, with recommendations,
//! as far as the reader may see. The page and `GET /v1/contention` show the same.

use domain::access::Visible;
use domain::contention::recommendations::{self, Advice, Retained};
use domain::contention::{Contention, ContentionSort, ROWS_MAX, worst};
use domain::history::series::{HistorySeries, HistorySpan, WatchedSpans};
use domain::names::BackendName;

use crate::history::History;
use inventory::Inventory;

/// Prefixes with recommendations beyond those shown: those acquired most.
const BUSY_MAX: usize = 12;
/// Period of the recommendations, in milliseconds: the default retention.
const RETAINED_MS: i64 = 30 * 24 * 3_600_000;

/// Reads for one reader.
#[derive(Clone, Copy)]
pub struct ContentionReader<'a> {
    pub history: &'a History,
    pub inventory: &'a Inventory,
    pub visible: &'a Visible,
    /// Milliseconds since 1970.
    pub now: i64,
}

impl ContentionReader<'_> {
    /// Rows by wait, and in the requested order.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn read(
        &self,
        span: HistorySpan,
        by: ContentionSort,
    ) -> Result<(Contention, Contention), sqlx::Error> {
        let mut series = self.history.series(span).await?.seen_by(self.visible);
        let by_wait = worst(&series, ContentionSort::Wait, ROWS_MAX);
        let mut indexes = by_wait.clone();
        let by_order = worst(&series, by, ROWS_MAX);
        indexes.extend(by_order.iter().filter(|index| !by_wait.contains(index)));
        self.history.load_histograms(&mut series, &indexes).await?;
        let retained = Box::pin(self.retained(&series, &indexes)).await?;
        let with_advice = |mut found: Contention| {
            for row in &mut found.rows {
                row.advice.extend(recommendations::from_range(row));
                let history_advice = retained
                    .iter()
                    .find(|(backend, prefix, _)| *backend == row.backend && *prefix == row.prefix);
                row.advice.extend(
                    history_advice
                        .into_iter()
                        .flat_map(|(_, _, advice)| advice.clone()),
                );
            }
            found
        };
        let found = with_advice(domain::contention::contention(&series, &by_wait));
        let top = with_advice(domain::contention::contention(&series, &by_order));
        Ok((found, top))
    }

    /// Time spent waiting in a span; `None` if none of it was observed.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn waited_ms(&self, span: HistorySpan) -> Result<Option<u64>, sqlx::Error> {
        let series = self.history.series(span).await?.seen_by(self.visible);
        let is_known = series.backends.iter().any(WatchedSpans::reports_waiters);
        Ok(is_known.then(|| series.prefixes.iter().map(|prefix| prefix.total.waiting_ms).sum()))
    }

    /// Recommendations from all stored history, for the prefixes that have a row.
    async fn retained(
        &self,
        shown: &HistorySeries,
        indexes: &[usize],
    ) -> Result<Vec<(BackendName, String, Vec<Advice>)>, sqlx::Error> {
        let span = HistorySpan::new(self.now - RETAINED_MS, self.now, self.now);
        let mut series = self.history.series(span).await?.seen_by(self.visible);
        let is_shown = |index: &usize| {
            let prefix = &series.prefixes[*index];
            let mut rows = indexes.iter().map(|index| &shown.prefixes[*index]);
            rows.any(|row| row.backend == prefix.backend && row.prefix == prefix.prefix)
        };
        let selected: Vec<usize> = (0..series.prefixes.len())
            .filter(is_shown)
            .take(ROWS_MAX + BUSY_MAX)
            .collect();
        self.history.load_histograms(&mut series, &selected).await?;
        let advised = selected.iter().map(|index| {
            let prefix = &series.prefixes[*index];
            let watched = series.watched(&prefix.backend);
            let sum = |ms: fn(&WatchedSpans) -> &Vec<i64>| watched.map_or(0, |spans| ms(spans).iter().sum());
            let advice = recommendations::from_history(Retained {
                sums: &prefix.total,
                watched_ms: sum(|spans| &spans.watched_ms),
                waits_ms: sum(|spans| &spans.waits_ms),
                has_tokens: !self.inventory.traits(&prefix.backend).lacks_fencing_tokens,
            });
            (prefix.backend.clone(), prefix.prefix.clone(), advice)
        });
        Ok(advised.collect())
    }
}
