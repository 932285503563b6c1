//! Data of the fencing page: rejections of the lease service, with owners from the history of
//! grants.

use app::console::ConsoleError;
use domain::charts::range::{RangePreset, TimeRange};
use domain::charts::scale::TimeScale;
use domain::charts::shown_range::ShownRange;
use domain::fencing_rejections::{FencingInput, FencingPage, Rejection, RejectionFilter};
use domain::format;
use domain::history::HistoryEvent;
use domain::lease::NameRange;
use domain::names::BackendName;

use super::{ChartSources, ServerConsole, store_unavailable};
use crate::fencing_rejections::{self, ReadRejections};

/// Grants of the range that are read: to name owners by their tokens, and to show the latest.
const GRANTS_MAX: u32 = 5_000;

impl ServerConsole {
    /// `search` is the page's query string.
    pub(super) async fn fencing_page(&self, search: &str) -> Result<FencingPage, ConsoleError> {
        let pairs = app::links::pairs(search);
        // To the end of this second: the store's clock may be ahead.
        let now = (self.clock.now().wall.timestamp_millis() / 1_000 + 1) * 1_000;
        let query = match RejectionFilter::from_pairs(&pairs) {
            Ok(query) => query,
            Err(error) => return Ok(FencingPage::refused(error, self.visible_backends(), now)),
        };
        let Some(sources) = &self.charts else {
            return Err(store_unavailable("there is no history"));
        };
        let whole = query
            .range
            .unwrap_or(TimeRange::Last(RangePreset::Day))
            .scale(now);
        let ReadRejections {
            rows: mut rejections,
            is_complete,
        } = self.read_rejections(sources, whole).await?;
        let left_out = omission(&rejections, is_complete);
        let mut grants = self.read_grants(sources, whole).await;
        fencing_rejections::name_owners(&mut rejections, grants.as_deref().unwrap_or_default());
        let is_unused = rejections.is_empty() && is_complete && !self.has_rejections(sources).await?;
        rejections.retain(|row| query.fits(row));
        if let Some(grants) = &mut grants {
            grants.retain(|grant| query.fits_grant(grant));
        }
        let since = self.begin_of_data(sources, &rejections).await;
        let range = ShownRange::new(Ok(query.range), RangePreset::Day, since, now);
        let before = self.count_before(sources, &query, &range).await;
        Ok(FencingPage::new(
            &query,
            FencingInput {
                range,
                rejections,
                before,
                grants,
                is_unused,
                left_out,
                backends: self.visible_backends(),
            },
        ))
    }

    async fn read_rejections(
        &self,
        sources: &ChartSources,
        scale: TimeScale,
    ) -> Result<ReadRejections, ConsoleError> {
        let scope = self.visible.on(&BackendName::builtin());
        let rows = fencing_rejections::read(&sources.leases, scale, &scope).await;
        rows.map_err(store_unavailable)
    }

    async fn has_rejections(&self, sources: &ChartSources) -> Result<bool, ConsoleError> {
        let scope = self.visible.on(&BackendName::builtin());
        let used = fencing_rejections::is_used(&sources.leases, &scope).await;
        used.map_err(store_unavailable)
    }

    /// `None` if history cannot be read: rejections alone are still worth a page.
    async fn read_grants(&self, sources: &ChartSources, scale: TimeScale) -> Option<Vec<HistoryEvent>> {
        let names = self.visible_ranges();
        let grants = sources
            .history
            .grants(scale.from(), scale.until(), names.as_deref(), GRANTS_MAX);
        let read = grants.await;
        read.inspect_err(|error| tracing::warn!("history cannot be read: {error}"))
            .ok()
    }

    /// The older of the begin of history and the oldest of these rejections.
    async fn begin_of_data(&self, sources: &ChartSources, rejections: &[Rejection]) -> Option<i64> {
        let since = sources.since().await;
        let oldest = rejections.last().map(|row| row.at);
        since.into_iter().chain(oldest).min()
    }

    /// Rejections of the preceding period; `None` if the data does not go back that far.
    async fn count_before(
        &self,
        sources: &ChartSources,
        query: &RejectionFilter,
        range: &ShownRange,
    ) -> Option<u64> {
        if range.begins_with_data {
            return None;
        }
        let (from, length) = (range.scale.from(), range.scale.length_ms());
        let before = TimeScale::new(from.saturating_sub(length), from);
        if sources.since().await.is_none_or(|since| since > before.from()) {
            return None;
        }
        let read = self.read_rejections(sources, before).await.ok()?;
        let count = || read.rows.iter().filter(|row| query.fits(row)).count() as u64;
        read.is_complete.then(count)
    }

    /// Backends with any name that the reader may see.
    fn visible_backends(&self) -> Vec<String> {
        let is_visible = |name: &String| {
            let name = BackendName::parse(name);
            name.is_ok_and(|name| !self.visible.on(&name).is_nothing())
        };
        self.backends.names().into_iter().filter(is_visible).collect()
    }

    /// Ranges of names that the reader may see, per backend; `None`: everything.
    fn visible_ranges(&self) -> Option<Vec<(BackendName, NameRange)>> {
        if self.visible.is_everything() {
            return None;
        }
        let names = self.backends.names();
        let backends = names.iter().filter_map(|name| BackendName::parse(name).ok());
        let ranges = backends.flat_map(|backend| {
            let ranges = self.visible.on(&backend).ranges("");
            ranges.into_iter().map(move |range| (backend.clone(), range))
        });
        Some(ranges.collect())
    }
}

/// Why rejections of the range are missing.
fn omission(rows: &[Rejection], is_complete: bool) -> Option<String> {
    let rows_max = u64::from(fencing_rejections::ROWS_MAX);
    if !is_complete {
        let text = "A shard of the lease store does not answer: rejections of its locks are missing.";
        return Some(text.to_owned());
    }
    let newest = format::count(rows_max);
    (rows.len() as u64 >= rows_max)
        .then(|| format!("Only the newest {newest} rejections of this range are read."))
}
