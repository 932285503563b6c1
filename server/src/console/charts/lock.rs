//! Charts of one lock's page.

use app::charts::hold_time::{self, HoldNow};
use app::charts::ownership_timeline::{self, Links};
use app::charts::recent_events;
use app::links::with_query;
use domain::access::Visible;
use domain::charts::hold_time::Holds;
use domain::charts::range::RangePreset;
use domain::charts::timeline::{
    self, Holder, RejectedWrite, Revoked, Timeline, TimelineInput, TimelineWaiter,
};
use domain::history::series::{HistorySpan, PrefixSeries};
use domain::history::{HistoryEvent, template};
use domain::lease::StoreTime;
use domain::lock_detail::{LockCharts, LockDetail};
use domain::names::{BackendName, OwnerId};
use domain::reported::Reported;
use domain::token::FencingToken;

use super::{ChartSources, PATIENCE, Ranged, unread};
use lease::{RejectionQuery, RejectionRow};

/// Limits per lock: history rows, rejections and forced unlocks.
const ROWS_MAX: usize = 10_000;
const REFUSED_MAX: u32 = 500;
const REVOKED_MAX: u32 = 50;

/// Data for the charts.
struct Read {
    events: Vec<HistoryEvent>,
    gaps: Vec<(i64, i64)>,
    refused: Vec<RejectedWrite>,
    revoked: Vec<Revoked>,
    since: Option<i64>,
}

impl ChartSources {
    pub(in crate::console) async fn lock(
        &self,
        detail: &LockDetail,
        search: &str,
        (may_audit, visible): (bool, &Visible),
    ) -> LockCharts {
        if detail.is_past {
            self.released_charts(detail, search, (may_audit, visible)).await
        } else {
            self.drawn(detail, search, (may_audit, visible)).await
        }
    }

    async fn drawn(
        &self,
        detail: &LockDetail,
        search: &str,
        (may_audit, visible): (bool, &Visible),
    ) -> LockCharts {
        let wall = self.clock.now().wall.timestamp_millis();
        let ranged = Ranged::read(search, fitting(detail), wall);
        let seen = recent_events::seen(&detail.seen, &runtime::telemetry::trace_link).into_string();
        let reading = tokio::time::timeout(PATIENCE, self.read(detail, &ranged));
        let Ok(Ok(read)) = reading.await else {
            return LockCharts {
                ownership: unread("ownership", "Ownership").into_string(),
                hold_time: unread("hold-time", "Hold time").into_string(),
                seen,
                past: String::new(),
            };
        };
        LockCharts {
            ownership: ownership(detail, &ranged, &read, wall, may_audit),
            hold_time: self.hold_time(detail, &read, visible, wall).await,
            seen,
            past: String::new(),
        }
    }

    /// Charts of a lock that is not held: the same as for a held one, rendered after the facts of its last holding.
    async fn released_charts(&self, detail: &LockDetail, search: &str, may: (bool, &Visible)) -> LockCharts {
        let charts = self.drawn(detail, search, may).await;
        let facts = &detail.charts.past;
        let past = format!(
            "<div class=\"lock\">{facts}{}<div class=\"lock-pair\">{}{}</div></div>",
            charts.ownership, charts.hold_time, charts.seen
        );
        LockCharts {
            past,
            ..LockCharts::default()
        }
    }

    async fn read(&self, detail: &LockDetail, ranged: &Ranged) -> Result<Read, sqlx::Error> {
        let id = &detail.lock.id;
        let events = self
            .history
            .events_of(
                &id.backend,
                Some(&id.source),
                &id.resource,
                (0, i64::MAX),
                ROWS_MAX,
            )
            .await?;
        let (from, until) = (ranged.scale.from(), ranged.scale.until());
        let oldest = events.first().map_or(from, |event| event.at.min(from));
        Ok(Read {
            gaps: self.history.gaps(oldest, until).await?,
            refused: self.refused(detail, from, until).await,
            revoked: self.revoked(detail).await?,
            since: self.history.since().await?,
            events,
        })
    }

    /// Only the built-in service records fencing rejections.
    async fn refused(&self, detail: &LockDetail, from: i64, until: i64) -> Vec<RejectedWrite> {
        let id = &detail.lock.id;
        if id.backend != BackendName::builtin() {
            return Vec::new();
        }
        let query = RejectionQuery {
            resource: Some(id.resource.clone()),
            names: None,
            from: StoreTime::from_ms(from),
            until: StoreTime::from_ms(until),
            most: REFUSED_MAX,
        };
        // The timeline is still useful without them.
        let rows = self.leases.query_rejections(&query).await.unwrap_or_default();
        let mut refused: Vec<RejectedWrite> = rows.into_iter().map(refusal).collect();
        refused.sort_by_key(|refused| refused.at);
        refused
    }

    async fn revoked(&self, detail: &LockDetail) -> Result<Vec<Revoked>, sqlx::Error> {
        let id = &detail.lock.id;
        let unlocks = self
            .unlocks
            .released(&id.backend, &id.resource, REVOKED_MAX)
            .await?;
        let of_source = unlocks.into_iter().filter(|unlock| unlock.source == id.source);
        let revoked = of_source.filter_map(|unlock| {
            Some(Revoked {
                at: unlock.acted_at?.timestamp_millis(),
                owner: unlock.observed.owner_id.known().cloned(),
                token: unlock.observed.fencing_token.known().copied(),
                by: unlock.by_name,
                id: unlock.id,
            })
        });
        Ok(revoked.collect())
    }
}

/// The shortest range that shows this hold and some time before it.
fn fitting(detail: &LockDetail) -> RangePreset {
    let held_ms = detail.lock.held_ms.known().copied();
    let shown_ms = held_ms.unwrap_or(detail.lock.held_at_least_ms).saturating_mul(3) / 2;
    let fits = |last: &RangePreset| last.length_ms() >= shown_ms;
    RangePreset::ALL
        .into_iter()
        .find(fits)
        .unwrap_or(RangePreset::Month)
}

fn refusal(row: RejectionRow) -> RejectedWrite {
    let token = |number: i64| FencingToken::new(number.cast_unsigned());
    RejectedWrite {
        at: row.at.ms(),
        token: token(row.token),
        current: row.highest.map(token),
        owner: row.owner.map(OwnerId::new),
        source: row.source,
    }
}

fn ownership(detail: &LockDetail, ranged: &Ranged, read: &Read, wall: i64, may_audit: bool) -> String {
    let holders = holders(detail, wall);
    let waiters = waiters(detail, wall);
    let input = TimelineInput {
        holders: holders.as_deref(),
        waiters: &waiters,
        ..timeline_input(read)
    };
    let timeline = Timeline::new(&input, ranged.scale, ranged.now);
    let name = detail.lock.id.resource.text();
    let links = Links {
        may_audit,
        fencing: &with_query("/fencing", [("prefix", &name)]),
    };
    ownership_timeline::ownership(&timeline, &ranged.words(), ranged.links(), &links).into_string()
}

fn timeline_input(read: &Read) -> TimelineInput<'_> {
    TimelineInput {
        events: &read.events,
        gaps: &read.gaps,
        refused: &read.refused,
        revoked: &read.revoked,
        since: read.since,
        ..TimelineInput::default()
    }
}

/// `None`: the backend did not report it.
fn holders(detail: &LockDetail, now: i64) -> Option<Vec<Holder>> {
    let lock = &detail.lock;
    let owners: Vec<OwnerId> = match &detail.fresh {
        Reported::NotApplicable(_) => return Some(Vec::new()),
        Reported::Unknown(_) => return None,
        Reported::Value(fresh) => fresh.owners.clone(),
    };
    let first = Holder {
        owner: lock.owner_id.known().cloned(),
        token: lock.fencing_token.known().copied(),
        since: lock.held_ms.known().map(|held| now - held),
    };
    let others = owners
        .into_iter()
        .filter(|owner| Some(owner) != first.owner.as_ref());
    let others: Vec<Holder> = others
        .map(|owner| Holder {
            owner: Some(owner),
            token: None,
            since: None,
        })
        .collect();
    Some(std::iter::once(first).chain(others).collect())
}

fn waiters(detail: &LockDetail, now: i64) -> Vec<TimelineWaiter> {
    let fresh = detail.fresh.known();
    let waiters = fresh.map_or(&[][..], |fresh| &fresh.waiters[..]);
    let input = waiters.iter().map(|waiter| TimelineWaiter {
        owner: waiter.owner_id.clone(),
        since: waiter.waited_ms.known().map(|waited| now - waited),
        place: waiter.position,
    });
    input.collect()
}

impl ChartSources {
    /// Compared with all recorded holds of the lock, or of its template if these are few.
    async fn hold_time(&self, detail: &LockDetail, read: &Read, visible: &Visible, now: i64) -> String {
        let own = Holds::from_blocks(&timeline::blocks(&timeline_input(read), now));
        let (holds, what) = match self.template_holds(detail, &own, visible, now).await {
            Some((holds, kind)) => (holds, format!("of {kind}")),
            None => (own, "of this lock".to_owned()),
        };
        let lock = &detail.lock;
        let held_ms = lock.held_ms.known().copied().unwrap_or(lock.held_at_least_ms);
        let is_long =
            holds.count() >= hold_time::FEW && holds.percentile(95).is_some_and(|p95| held_ms > p95);
        let is_held = !detail.is_gone() && detail.lock.owner_count > 0;
        let now = is_held.then_some(HoldNow { held_ms, is_long });
        let alert = holds.percentile(95).map(|p95| {
            let pairs = [
                ("condition", "long_held".to_owned()),
                ("backends", lock.id.backend.to_string()),
                ("prefix", lock.id.resource.text()),
                ("with.longer_than", format!("{}s", (p95 / 1_000).max(1))),
            ];
            with_query("/alerts/rules/new", pairs)
        });
        hold_time::hold_time(&holds, now, &what, alert.as_deref()).into_string()
    }

    /// Holds of all locks with the same template, if there are more and the caller may see all of them.
    async fn template_holds(
        &self,
        detail: &LockDetail,
        own: &Holds,
        visible: &Visible,
        now: i64,
    ) -> Option<(Holds, String)> {
        if own.count() >= hold_time::FEW {
            return None;
        }
        let id = &detail.lock.id;
        let kind = template::template(id.resource.as_bytes());
        let span = HistorySpan::new(now - RangePreset::Month.length_ms(), now, now);
        let read = async {
            let mut series = self.history.series(span).await?.seen_by(visible);
            let is_its = |series: &PrefixSeries| series.backend == id.backend && series.prefix == kind;
            let place = series.prefixes.iter().position(is_its);
            if let Some(place) = place {
                self.history.deepen(&mut series, &[place]).await?;
            }
            Ok::<_, sqlx::Error>(place.map(|place| {
                let total = &series.prefixes[place].total;
                Holds::counted(total.holds.bars()).with_uncertain(total.holds_uncertain)
            }))
        };
        // The lock's own holds are shown without it.
        let read = tokio::time::timeout(PATIENCE, read).await.ok()?.ok()??;
        (read.count() > own.count()).then_some((read, kind))
    }
}
