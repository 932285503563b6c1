//! Charts of the overview page.

use domain::access::{Permission, Visible};
use domain::charts::held_locks::{ChartEvent, HeldLocksChart, HeldNow};
use domain::charts::range::RangePreset;
use domain::charts::shown_range::ShownRange;
use domain::fencing_rejections::Rejection;
use domain::history::series::{HistorySeries, HistorySpan, PrefixSeries};
use domain::names::BackendName;
use domain::overview::{
    FIRING_ROWS_MAX, FiringAlert, FiringAlerts, Overview, OverviewCharts, RECENT_ROWS_MAX, RecentRejections,
    RecentUnlock, RecentUnlocks,
};
use domain::unlock::Unlock;
use futures::future::BoxFuture;

use super::{CHART_TIMEOUT, ChartSources};
use crate::alerts::OpenAlert;
use crate::fencing_rejections;
use crate::identity::Principal;
use lease::LeaseError;

/// Forced unlocks of visible locks that are counted.
const UNLOCKS_MAX: usize = 1_000;
/// URL parameter that adds the previous span of the same length.
const COMPARE: (&str, &str) = (app::charts::held_locks::COMPARE, "before");
/// Marks per kind below the lines.
const MARKS_MAX: usize = 20;

impl ChartSources {
    pub(in crate::console) async fn overview(
        &self,
        overview: &Overview,
        search: &str,
        (who, visible): (Option<&Principal>, &Visible),
    ) -> OverviewCharts {
        let pairs = app::links::pairs(search);
        // Reads of a step run at once: a store that hangs delays the page by one timeout for all of them.
        let (since, simulated) = tokio::join!(self.since(), self.simulated_until());
        let range = ShownRange::from_pairs(&pairs, RangePreset::SixHours, since, self.now_ms())
            .with_simulated(simulated);
        let now = HeldNow {
            held: overview.held_total,
            waiting: overview.waiters_total,
            is_cut: !visible.is_everything(),
        };
        let is_compared = pairs.contains(&(COMPARE.0.to_owned(), COMPARE.1.to_owned()));
        let held = Box::pin(self.held(&range, visible, is_compared, now));
        let (refused, unlocks, held, alerts) = tokio::join!(
            read_in_time("fencing rejections", Box::pin(self.rejections(&range, visible))),
            read_in_time("forced unlocks", Box::pin(self.acted(&range, who))),
            read_in_time("rollups of history", held),
            read_in_time("alerts", Box::pin(self.firing(visible))),
        );
        let held = held.map(|(series, chart)| HeldLocksChart {
            events: marks(
                &series,
                refused.as_deref().unwrap_or_default(),
                unlocks.as_deref().unwrap_or_default(),
            ),
            ..chart
        });
        OverviewCharts {
            alerts,
            held,
            rejections: refused.map(|refused| RecentRejections {
                total: refused.len() as u64,
                newest: refused.into_iter().take(RECENT_ROWS_MAX).collect(),
            }),
            unlocks: unlocks.map(|unlocks| RecentUnlocks {
                total: unlocks.len() as u64,
                newest: unlocks.into_iter().take(RECENT_ROWS_MAX).map(recent).collect(),
            }),
            may_audit: who.is_some_and(|who| who.may_anywhere(Permission::AuditRead)),
            range,
        }
    }

    /// Firing alerts, by severity.
    async fn firing(&self, visible: &Visible) -> Result<FiringAlerts, sqlx::Error> {
        let open = self.alerts.open(visible).await?;
        let firing = open.iter().filter(|open| open.kept.alert.is_firing());
        let alert = |OpenAlert { kept, rule, .. }: &OpenAlert| FiringAlert {
            rule: rule.name.clone(),
            severity: rule.severity,
            subject: kept.alert.subject.clone(),
            why: kept.alert.why.clone(),
            since: kept.alert.since(),
        };
        Ok(FiringAlerts {
            total: firing.clone().count() as u64,
            worst: firing.take(FIRING_ROWS_MAX).map(alert).collect(),
        })
    }

    async fn held(
        &self,
        range: &ShownRange,
        visible: &Visible,
        is_compared: bool,
        now: HeldNow,
    ) -> Result<(HistorySeries, HeldLocksChart), sqlx::Error> {
        let span = HistorySpan::new(range.scale.from(), range.scale.until(), range.now);
        let series = self.history.series(span).await?.seen_by(visible);
        let chart = HeldLocksChart::new(&series, now, Vec::new());
        let chart = if is_compared {
            let before = self.history.series(span.before()).await?.seen_by(visible);
            chart.compared_to(&before, span)
        } else {
            chart
        };
        Ok((series, chart))
    }

    async fn rejections(&self, range: &ShownRange, visible: &Visible) -> Result<Vec<Rejection>, LeaseError> {
        let scope = visible.on(&BackendName::builtin());
        let found = fencing_rejections::read(&self.leases, range.scale, &scope).await?;
        found
            .is_complete
            .then_some(found.rows)
            .ok_or(LeaseError::Unavailable)
    }

    async fn acted(&self, range: &ShownRange, who: Option<&Principal>) -> Result<Vec<Unlock>, sqlx::Error> {
        let Some(who) = who else { return Ok(Vec::new()) };
        let (from, until) = (range.scale.from(), range.scale.until());
        self.unlocks.acted(who, from, until, UNLOCKS_MAX).await
    }
}

/// `None`: not read, or not in time, which is shown as unknown.
async fn read_in_time<T, E: std::fmt::Display>(
    what: &'static str,
    read: BoxFuture<'_, Result<T, E>>,
) -> Option<T> {
    match tokio::time::timeout(CHART_TIMEOUT, read).await {
        Ok(read) => read
            .inspect_err(|error| tracing::warn!("{what} cannot be read: {error}"))
            .ok(),
        Err(_) => None,
    }
}

fn recent(unlock: Unlock) -> RecentUnlock {
    RecentUnlock {
        at: unlock.acted_at.unwrap_or(unlock.created_at).timestamp_millis(),
        resource: unlock.resource.text(),
        id: unlock.id,
        state: unlock.state,
        by: unlock.by_name,
        reason: unlock.reason.to_string(),
    }
}

/// Recent events for the row below the lines, per kind.
fn marks(series: &HistorySeries, refused: &[Rejection], unlocks: &[Unlock]) -> Vec<ChartEvent> {
    let refused = refused.iter().take(MARKS_MAX).map(|row| ChartEvent::Rejection {
        at: row.at,
        token: row.token,
        resource: row.resource.clone(),
    });
    let unlocks = unlocks
        .iter()
        .take(MARKS_MAX)
        .map(|unlock| ChartEvent::ForcedUnlock {
            at: unlock.acted_at.unwrap_or(unlock.created_at).timestamp_millis(),
            by: unlock.by_name.clone(),
            id: unlock.id.clone(),
        });
    let reclaims = (0..series.span.cells).filter_map(|cell| {
        let of = |prefix: &PrefixSeries| prefix.cells.get(cell).map_or(0, |sums| sums.reclaimed);
        let count: u64 = series.prefixes.iter().map(of).sum();
        let from = series.span.start(cell);
        let until = from + series.span.passed_ms(cell);
        (count > 0).then_some(ChartEvent::Reclaims { from, until, count })
    });
    reclaims.chain(unlocks).chain(refused).collect()
}
