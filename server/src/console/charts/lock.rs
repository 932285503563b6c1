//! Charts of one lock's page.

use domain::access::Visible;
use domain::charts::durations::{DurationChart, DurationsOf, FEW, Holds};
use domain::charts::range::RangePreset;
use domain::charts::shown_range::ShownRange;
use domain::charts::timeline::{
    self, Holder, RejectedWrite, Revoked, Timeline, TimelineInput, TimelineWaiter,
};
use domain::history::series::{HistorySpan, PrefixSeries};
use domain::history::{HistoryEvent, template};
use domain::lease::StoreTime;
use domain::lock::Lock;
use domain::lock_detail::{LockCharts, LockDetail, LockHistory};
use domain::names::{BackendName, OwnerId};
use domain::reported::Reported;
use domain::state::{LockState, StateReason};
use domain::token::FencingToken;

use super::{CHART_TIMEOUT, ChartSources};
use lease::{RejectionQuery, RejectionRow};

/// Limits per lock: history rows, rejections and forced unlocks.
const ROWS_MAX: usize = 10_000;
const REJECTIONS_MAX: u32 = 500;
const REVOKED_MAX: u32 = 50;

/// Data for the charts.
struct Read {
    events: Vec<HistoryEvent>,
    gaps: Vec<(i64, i64)>,
    /// `None`: the lease store does not answer.
    rejections: Option<Vec<RejectedWrite>>,
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
        let now = self.now_ms();
        let (pairs, preset) = (app::links::pairs(search), default_range(detail));
        let earliest = now.saturating_sub(preset.length_ms());
        let events = tokio::time::timeout(CHART_TIMEOUT, self.events(detail)).await;
        let events = events.ok().and_then(Result::ok);
        let since = events
            .as_deref()
            .and_then(|events| begin_of_data(detail, events, earliest, now));
        let first = events.as_deref().and_then(|events| events.first());
        let first = first.map_or(i64::MAX, |event| event.at);
        let range = ShownRange::from_pairs(&pairs, preset, since, now)
            .with_simulated(self.simulated_until().await.filter(|until| first < *until));
        let history = match events {
            Some(events) => {
                let reading = self.lock_history(detail, events, &range, visible);
                tokio::time::timeout(CHART_TIMEOUT, reading)
                    .await
                    .ok()
                    .and_then(Result::ok)
            }
            None => None,
        };
        LockCharts {
            range,
            history,
            may_audit,
            trace_links: trace_links(detail),
        }
    }

    async fn lock_history(
        &self,
        detail: &LockDetail,
        events: Vec<HistoryEvent>,
        range: &ShownRange,
        visible: &Visible,
    ) -> Result<LockHistory, sqlx::Error> {
        let now = self.now_ms();
        let read = self.read(detail, events, range).await?;
        Ok(LockHistory {
            ownership: ownership(detail, range, &read, now),
            hold_times: self.hold_times(detail, &read, visible, now).await,
            wait_times: DurationChart::new(&waits(&read.events, range), None, DurationsOf::ThisLock),
        })
    }

    /// Oldest first.
    async fn events(&self, detail: &LockDetail) -> Result<Vec<HistoryEvent>, sqlx::Error> {
        let id = &detail.lock.id;
        let all = (0, i64::MAX);
        self.history
            .events_of(&id.backend, Some(&id.source), &id.resource, all, ROWS_MAX)
            .await
    }

    async fn read(
        &self,
        detail: &LockDetail,
        events: Vec<HistoryEvent>,
        range: &ShownRange,
    ) -> Result<Read, sqlx::Error> {
        let (from, until) = (range.scale.from(), range.scale.until());
        let oldest = events.first().map_or(from, |event| event.at.min(from));
        Ok(Read {
            gaps: self.history.gaps(oldest, until).await?,
            rejections: self.rejected_writes(detail, from, until).await,
            revoked: self.revoked(detail).await?,
            since: self.history.since().await?,
            events,
        })
    }

    /// Only the built-in service records fencing rejections. `None`: they could not be read; the timeline is still useful.
    async fn rejected_writes(
        &self,
        detail: &LockDetail,
        from: i64,
        until: i64,
    ) -> Option<Vec<RejectedWrite>> {
        let id = &detail.lock.id;
        if id.backend != BackendName::builtin() {
            return Some(Vec::new());
        }
        let query = RejectionQuery {
            resource: Some(id.resource.clone()),
            names: None,
            from: StoreTime::from_ms(from),
            until: StoreTime::from_ms(until),
            most: REJECTIONS_MAX,
        };
        let found = self.leases.query_rejections(&query).await.ok()?;
        let mut rejected: Vec<RejectedWrite> = found.rows.into_iter().map(rejected_write).collect();
        rejected.sort_by_key(|rejected| rejected.at);
        Some(rejected)
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
fn default_range(detail: &LockDetail) -> RangePreset {
    let held_ms = detail.lock.held_ms.known().copied();
    let shown_ms = held_ms.unwrap_or(detail.lock.held_at_least_ms).saturating_mul(3) / 2;
    let fits = |last: &RangePreset| last.length_ms() >= shown_ms;
    RangePreset::ALL
        .into_iter()
        .find(fits)
        .unwrap_or(RangePreset::Month)
}

fn rejected_write(row: RejectionRow) -> RejectedWrite {
    let token = |number: i64| FencingToken::new(number.cast_unsigned());
    RejectedWrite {
        at: row.at.ms(),
        token: token(row.token),
        current: row.highest.map(token),
        owner: row.owner.map(OwnerId::new),
        source: row.source,
    }
}

/// Begin of the events or of the present hold, whichever is earlier. `None`: it is before the
/// range, or nothing is recorded.
fn begin_of_data(detail: &LockDetail, events: &[HistoryEvent], earliest: i64, now: i64) -> Option<i64> {
    let lock = &detail.lock;
    let held_ms = lock.held_ms.known().copied().unwrap_or(lock.held_at_least_ms);
    let first = events.first().map(|event| event.at);
    let held_since = (!detail.is_gone()).then(|| now.saturating_sub(held_ms));
    let begin = first.into_iter().chain(held_since).min()?;
    // A twentieth more, so that the first grant is not at the very edge; in whole steps, so that
    // a chart without changes stays identical.
    let length = now - begin;
    let step = if length < 600_000 { 1_000 } else { 10_000 };
    let margin = length / 20 / step * step;
    (begin > earliest).then(|| begin - margin)
}

/// Ended waits of the range.
fn waits(events: &[HistoryEvent], range: &ShownRange) -> Holds {
    let inside = events.iter().filter(|event| range.scale.contains(event.at));
    Holds::new(inside.filter_map(|event| event.waited_ms).collect())
}

fn trace_links(detail: &LockDetail) -> Vec<(String, String)> {
    let ids = detail.seen.iter().filter_map(|event| event.trace_id.as_ref());
    let links = ids.filter_map(|id| Some((id.clone(), runtime::telemetry::trace_link(id)?)));
    links.collect()
}

fn ownership(detail: &LockDetail, range: &ShownRange, read: &Read, wall: i64) -> Timeline {
    let holders = holders(detail, wall);
    let waiters = waiters(detail, wall);
    let input = TimelineInput {
        holders: holders.as_deref(),
        is_shared: is_shared(&detail.lock),
        waiters: &waiters,
        ..timeline_input(read)
    };
    Timeline::new(&input, range.scale, range.now)
}

fn timeline_input(read: &Read) -> TimelineInput<'_> {
    TimelineInput {
        events: &read.events,
        gaps: &read.gaps,
        refused: read.rejections.as_deref().unwrap_or_default(),
        is_refused_unread: read.rejections.is_none(),
        revoked: &read.revoked,
        since: read.since,
        ..TimelineInput::default()
    }
}

fn is_shared(lock: &Lock) -> bool {
    let is_conflict = |reason: &StateReason| matches!(reason.state, LockState::DualOwner | LockState::Split);
    lock.owner_count > 1 && !lock.reasons.iter().any(is_conflict)
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
    async fn hold_times(
        &self,
        detail: &LockDetail,
        read: &Read,
        visible: &Visible,
        now: i64,
    ) -> DurationChart {
        let own_holds = Holds::from_blocks(&timeline::blocks(&timeline_input(read), now));
        let (holds, of) = match self.template_holds(detail, &own_holds, visible, now).await {
            Some((holds, prefix)) => (holds, DurationsOf::Prefix(prefix)),
            None => (own_holds, DurationsOf::ThisLock),
        };
        let lock = &detail.lock;
        let held_ms = lock.held_ms.known().copied().unwrap_or(lock.held_at_least_ms);
        let is_held = !detail.is_gone() && lock.owner_count > 0;
        DurationChart::new(&holds, is_held.then_some(held_ms), of)
    }

    /// Holds of all locks with the same template, if there are more and the caller may see all of them.
    async fn template_holds(
        &self,
        detail: &LockDetail,
        own_holds: &Holds,
        visible: &Visible,
        now: i64,
    ) -> Option<(Holds, String)> {
        if own_holds.count() >= FEW {
            return None;
        }
        let id = &detail.lock.id;
        let template = template::template(id.resource.as_bytes());
        let span = HistorySpan::new(now - RangePreset::Month.length_ms(), now, now);
        let read = async {
            let mut series = self.history.series(span).await?.seen_by(visible);
            let is_same_template =
                |series: &PrefixSeries| series.backend == id.backend && series.prefix == template;
            let index = series.prefixes.iter().position(is_same_template);
            if let Some(index) = index {
                self.history.load_histograms(&mut series, &[index]).await?;
            }
            Ok::<_, sqlx::Error>(index.map(|index| {
                let total = &series.prefixes[index].total;
                Holds::counted(total.holds.bars()).with_uncertain(total.holds_uncertain)
            }))
        };
        // The lock's own holds are shown without it.
        let read = tokio::time::timeout(CHART_TIMEOUT, read).await.ok()?.ok()??;
        (read.count() > own_holds.count()).then_some((read, template))
    }
}
