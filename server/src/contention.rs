//! Contention: wait and hold times of prefixes over a span, from roll-ups, with recommendations,
//! as far as the reader may see. The page and `GET /v1/contention` show the same.

use domain::access::Visible;
use domain::contention::recommendations::{self, Advice, Retained};
use domain::contention::{By, Contention, ROWS_MAX, worst};
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
    pub async fn read(&self, span: HistorySpan, by: By) -> Result<(Contention, Contention), sqlx::Error> {
        let mut series = self.history.series(span).await?.seen_by(self.visible);
        let by_wait = worst(&series, By::Wait, ROWS_MAX);
        let mut places = by_wait.clone();
        let by_asked = worst(&series, by, ROWS_MAX);
        places.extend(by_asked.iter().filter(|place| !by_wait.contains(place)));
        self.history.deepen(&mut series, &places).await?;
        let retained = Box::pin(self.retained(&series, &places)).await?;
        let advised = |mut found: Contention| {
            for row in &mut found.rows {
                row.advice.extend(recommendations::from_range(row));
                let of = retained
                    .iter()
                    .find(|(backend, prefix, _)| *backend == row.backend && *prefix == row.prefix);
                row.advice
                    .extend(of.into_iter().flat_map(|(_, _, advice)| advice.clone()));
            }
            found
        };
        let found = advised(domain::contention::contention(&series, &by_wait));
        let top = advised(domain::contention::contention(&series, &by_asked));
        Ok((found, top))
    }

    /// Time spent waiting in a span; `None` if none of it was observed.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn waited_ms(&self, span: HistorySpan) -> Result<Option<u64>, sqlx::Error> {
        let series = self.history.series(span).await?.seen_by(self.visible);
        let is_known = series.backends.iter().any(WatchedSpans::reports_waiters);
        Ok(is_known.then(|| series.prefixes.iter().map(|of| of.total.waiting_ms).sum()))
    }

    /// Recommendations from all stored history, for the prefixes that have a row.
    async fn retained(
        &self,
        shown: &HistorySeries,
        places: &[usize],
    ) -> Result<Vec<(BackendName, String, Vec<Advice>)>, sqlx::Error> {
        let span = HistorySpan::new(self.now - RETAINED_MS, self.now, self.now);
        let mut series = self.history.series(span).await?.seen_by(self.visible);
        let is_shown = |place: &usize| {
            let of = &series.prefixes[*place];
            let mut rows = places.iter().map(|place| &shown.prefixes[*place]);
            rows.any(|row| row.backend == of.backend && row.prefix == of.prefix)
        };
        let wanted: Vec<usize> = (0..series.prefixes.len())
            .filter(is_shown)
            .take(ROWS_MAX + BUSY_MAX)
            .collect();
        self.history.deepen(&mut series, &wanted).await?;
        let advised = wanted.iter().map(|place| {
            let of = &series.prefixes[*place];
            let watched = series.watched(&of.backend);
            let sum = |ms: fn(&WatchedSpans) -> &Vec<i64>| watched.map_or(0, |it| ms(it).iter().sum());
            let advice = recommendations::from_history(Retained {
                sums: &of.total,
                watched_ms: sum(|it| &it.watched_ms),
                waits_ms: sum(|it| &it.waits_ms),
                has_tokens: !self.inventory.traits(&of.backend).lacks_fencing_tokens,
            });
            (of.backend.clone(), of.prefix.clone(), advice)
        });
        Ok(advised.collect())
    }
}
