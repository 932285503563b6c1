//! Data of the contention page.

use app::console::ConsoleError;
use domain::charts::range::RangePreset;
use domain::charts::shown_range::ShownRange;
use domain::contention::{ContentionPage, ContentionQuery, PageInput};
use domain::history::series::HistorySpan;

use super::{ServerConsole, live_waits, store_unavailable};
use crate::contention::ContentionReader;

/// Trees shown unless all are requested.
const TREES: usize = 4;

impl ServerConsole {
    /// `search` is the page's query string.
    pub(super) async fn contention_page(&self, search: &str) -> Result<ContentionPage, ConsoleError> {
        let pairs = app::links::pairs(search);
        let query = ContentionQuery::from_pairs(&pairs).map_err(ConsoleError::BadQuery)?;
        let mut page = Box::pin(self.contention_sums(&query))
            .await
            .map_err(store_unavailable)?;
        let (trees, fault) = Box::pin(live_waits::trees(self)).await;
        page.trees_total = trees.len();
        let shown = if query.all_trees { trees.len() } else { TREES };
        page.trees = trees.into_iter().take(shown).collect();
        page.trees_fault = fault;
        Ok(page)
    }

    async fn contention_sums(&self, query: &ContentionQuery) -> Result<ContentionPage, sqlx::Error> {
        let now = self.clock.now().wall.timestamp_millis();
        let Some(history) = &self.history else {
            return Err(sqlx::Error::PoolClosed);
        };
        let since = history.since().await?;
        let range = ShownRange::new(Ok(query.range), RangePreset::SixHours, since, now)
            .with_simulated(history.simulated_until().await?);
        let span = HistorySpan::new(range.scale.from(), range.scale.until(), now);
        let reader = ContentionReader {
            history,
            inventory: &self.inventory,
            visible: &self.visible,
            now,
        };
        let (found, top) = reader.read(span, query.by).await?;
        let all = history.durations(span, &self.visible).await?;
        let before_ms = match range.begins_with_data {
            true => None,
            false => reader.waited_ms(span.before()).await?,
        };
        Ok(ContentionPage::new(PageInput {
            query,
            range,
            found,
            top,
            all,
            before_ms,
            is_cut: !self.visible.is_everything(),
        }))
    }
}
