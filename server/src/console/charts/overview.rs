//! Charts of the overview page.

use app::charts::firing_alerts::{self, Firing, ROWS_MAX};
use app::charts::held_locks::{self, HeldLocks};
use app::charts::html_writer::Markup;
use app::charts::recent_incidents::{self, IncidentRange};
use app::charts::series::Event;
use app::links::with_query;
use domain::access::{Permission, Visible};
use domain::charts::range::RangePreset;
use domain::escape::visible;
use domain::fencing_rejections::Rejection;
use domain::format;
use domain::history::series::{HistorySeries, HistorySpan, PrefixSeries};
use domain::names::BackendName;
use domain::overview::{Overview, OverviewCharts};
use domain::unlock::Unlock;

use super::{ChartSources, PATIENCE, Ranged, unread};
use crate::alerts::{self, OpenAlert};
use crate::fencing_rejections;
use crate::identity::Principal;

/// Forced unlocks of visible locks that are counted.
const UNLOCKS_MAX: usize = 1_000;
/// Marks per kind below the lines.
const MARKS_MAX: usize = 20;

impl ChartSources {
    pub(in crate::console) async fn overview(
        &self,
        overview: &Overview,
        search: &str,
        (who, visible): (Option<&Principal>, &Visible),
    ) -> OverviewCharts {
        let wall = self.clock.now().wall.timestamp_millis();
        let ranged = Ranged::read(search, RangePreset::SixHours, wall);
        let incidents = self.incidents(&ranged, overview, (who, visible));
        OverviewCharts {
            alerts: tokio::time::timeout(PATIENCE, self.firing(visible))
                .await
                .unwrap_or_default()
                .into_string(),
            incidents: tokio::time::timeout(PATIENCE, incidents)
                .await
                .unwrap_or_default()
                .into_string(),
        }
    }

    /// Firing alerts, by severity; empty if they cannot be read.
    async fn firing(&self, visible: &Visible) -> Markup {
        let open = match self.alerts.open(visible).await {
            Ok(open) => open,
            Err(error) => {
                tracing::warn!("alerts cannot be read: {error}");
                return Markup::new();
            }
        };
        let firing = open.iter().filter(|open| open.kept.alert.is_firing());
        let rows: Vec<Firing> = firing
            .clone()
            .take(ROWS_MAX)
            .map(|OpenAlert { kept, rule, .. }| Firing {
                rule: rule.name.clone(),
                severity: rule.severity,
                path: alerts::path(&kept.alert.subject),
                subject: kept.alert.subject.clone(),
                why: kept.alert.why.clone(),
                since: kept.alert.since(),
            })
            .collect();
        firing_alerts::firing(&rows, firing.count() as u64)
    }

    async fn incidents(
        &self,
        ranged: &Ranged,
        overview: &Overview,
        (who, visible): (Option<&Principal>, &Visible),
    ) -> Markup {
        let words = ranged.words();
        let over = IncidentRange {
            words: &words,
            has_days: ranged.scale.length_ms() > RangePreset::Day.length_ms(),
        };
        let refused = self.rejections(ranged, visible).await;
        let unlocks = self.acted(ranged, who).await;
        let total = |rows: usize| rows as u64;
        let ledger = with_query("/fencing", ranged.range.pairs());
        let audit = who.filter(|who| who.may_anywhere(Permission::AuditRead));
        let audit = audit.map_or_else(String::new, |_| "/audit?action=FORCE_UNLOCK".to_owned());
        let held = match self.levels(ranged, visible).await {
            Ok(series) => {
                let now = HeldLocks {
                    held: overview.held_total,
                    waiting: overview.waiters_total,
                    is_cut: !visible.is_everything(),
                };
                let marks = marks(&series, &refused, &unlocks);
                held_locks::held_locks_chart(&series, now, marks, &words, ranged.links())
            }
            Err(error) => {
                tracing::warn!("rollups of history cannot be read: {error}");
                unread("held", "Held and waiting")
            }
        };
        let mut it = Markup::new();
        it.wrap("div", &[("class", "two low")], |it| {
            it.push(&held);
            it.wrap("div", &[("class", "stack")], |it| {
                it.push(&recent_incidents::refusals(
                    &refused,
                    total(refused.len()),
                    over,
                    ledger,
                ));
                it.push(&recent_incidents::unlocks(
                    &unlocks,
                    total(unlocks.len()),
                    over,
                    audit,
                ));
            });
        });
        it
    }

    async fn levels(&self, ranged: &Ranged, visible: &Visible) -> Result<HistorySeries, sqlx::Error> {
        let span = HistorySpan::new(ranged.scale.from(), ranged.scale.until(), ranged.now);
        Ok(self.history.series(span).await?.seen_by(visible))
    }

    /// Visible rejections; empty if they cannot be read.
    async fn rejections(&self, ranged: &Ranged, visible: &Visible) -> Vec<Rejection> {
        let scope = visible.on(&BackendName::builtin());
        let rows = fencing_rejections::read(&self.leases, ranged.scale, &scope).await;
        rows.unwrap_or_default()
    }

    async fn acted(&self, ranged: &Ranged, who: Option<&Principal>) -> Vec<Unlock> {
        let Some(who) = who else { return Vec::new() };
        let (from, until) = (ranged.scale.from(), ranged.scale.until());
        let acted = self.unlocks.acted(who, from, until, UNLOCKS_MAX).await;
        acted.unwrap_or_default()
    }
}

/// Recent events for the row below the lines, per kind.
fn marks(series: &HistorySeries, refused: &[Rejection], unlocks: &[Unlock]) -> Vec<Event> {
    let refused = refused.iter().take(MARKS_MAX).map(|row| Event {
        at: row.at,
        shape: "x",
        hue: "critical",
        title: format!("a write with token {} rejected", row.token),
        href: None,
    });
    let unlocks = unlocks.iter().take(MARKS_MAX).map(|unlock| Event {
        at: unlock.acted_at.unwrap_or(unlock.created_at).timestamp_millis(),
        shape: "revoke",
        hue: "",
        title: format!("forced unlock by {}", visible(&unlock.by_name)),
        href: None,
    });
    let reclaims = (0..series.span.cells).filter_map(|cell| {
        let of = |prefix: &PrefixSeries| prefix.cells.get(cell).map_or(0, |sums| sums.reclaimed);
        let count: u64 = series.prefixes.iter().map(of).sum();
        (count > 0).then(|| Event {
            at: series.span.start(cell) + series.span.passed_ms(cell) / 2,
            shape: "reclaim",
            hue: "",
            title: format::counted(count, "reclaim", "reclaims"),
            href: None,
        })
    });
    reclaims.chain(unlocks).chain(refused).collect()
}
