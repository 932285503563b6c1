//! Made-up histories for the charts: the timeline of the picture for one lock, and next to nothing for the others.

use app::charts::held_locks;
use app::charts::hold_time::{self, HoldNow};
use app::charts::html_writer::Markup;
use app::charts::ownership_timeline::{self, Links};
use app::charts::range_links::range_links;
use app::charts::recent_events;
use app::charts::recent_incidents::{self, IncidentRange};
use app::charts::released_lock_facts::{self, LastHolding, ReleasedLock};
use app::charts::series::Event;
use domain::charts::hold_time::Holds;
use domain::charts::range::{RangePreset as LastRange, TimeRange};
use domain::charts::timeline::{Holder, RejectedWrite, Revoked, Timeline, TimelineInput, TimelineWaiter};
use domain::fencing_rejections::Rejection;
use domain::history::rollup::Rollup;
use domain::history::series::{HistorySeries, HistorySpan, PrefixSeries, WatchedSpans};
use domain::history::{HistoryEvent, Run};
use domain::lock::Lock;
use domain::lock_detail::{EventKind, LockCharts, LockDetail};
use domain::names::{BackendName, OwnerId};
use domain::overview::OverviewCharts;
use domain::state::LockState;
use domain::token::FencingToken;

use crate::canned::Moment;

const MINUTE: i64 = 60_000;

pub(crate) fn lock_charts(detail: &LockDetail, search: &str, now: Moment) -> LockCharts {
    let lock = &detail.lock;
    let (wall, pairs) = (now.wall.timestamp_millis(), app::links::pairs(search));
    let given = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let range =
        TimeRange::from_pairs(given, LastRange::SixHours).unwrap_or(TimeRange::Last(LastRange::SixHours));
    let (events, refused, revoked) = history(lock, wall);
    let holders = holders(detail, wall);
    let waiters = waiters(detail, wall);
    let input = TimelineInput {
        events: &events,
        gaps: &[(wall - 300 * MINUTE, wall - 280 * MINUTE)],
        refused: &refused,
        revoked: &revoked,
        holders: holders.as_deref(),
        waiters: &waiters,
        since: Some(wall - 340 * MINUTE),
    };
    let timeline = Timeline::new(&input, range.scale(wall), wall);
    let fencing = app::links::with_query("/fencing", [("prefix", lock.id.resource.text())]);
    let to = Links {
        may_audit: true,
        fencing: &fencing,
    };
    let ownership =
        ownership_timeline::ownership(&timeline, &range.words(), range_links(range, "", &pairs), &to);
    let is_long = lock.state == LockState::LongHeld;
    let held_ms = lock.held_at_least_ms;
    let holds = Holds::new(if is_long { lengths() } else { Vec::new() });
    let here = (!detail.is_gone()).then_some(HoldNow { held_ms, is_long });
    let charts = LockCharts {
        ownership: ownership.into_string(),
        hold_time: hold_time::hold_time(&holds, here, "of this lock", None).into_string(),
        seen: recent_events::seen(&detail.seen, &|_| None).into_string(),
        past: String::new(),
    };
    if detail.is_past {
        released_charts(detail, &charts, now)
    } else {
        charts
    }
}

/// All charts of a free lock.
fn released_charts(detail: &LockDetail, charts: &LockCharts, now: Moment) -> LockCharts {
    let last = LastHolding::from_events(&detail.seen);
    let facts = released_lock_facts::facts(&ReleasedLock {
        last: &last,
        holder: detail.fresh.clone().map(|_| ()),
        source: &detail.lock.id.source,
        looked_at: now.wall,
        newest_token: None,
    });
    LockCharts {
        past: format!(
            "<div class=\"lock\">{}{}<div class=\"lock-pair\">{}{}</div></div>",
            facts.as_str(),
            charts.ownership,
            charts.hold_time,
            charts.seen
        ),
        ..LockCharts::default()
    }
}

/// As in the picture: four owners, one of them writes for nearly three minutes after losing it.
fn history(lock: &Lock, wall: i64) -> (Vec<HistoryEvent>, Vec<RejectedWrite>, Vec<Revoked>) {
    let is_the_one = lock.id.resource.text() == "tenant_123:billing-close:2026-04";
    let token = lock.fencing_token.known().map_or(4, |token| token.number());
    let held = lock.held_at_least_ms;
    let event = |ago_ms: i64, kind, owner: &str, back: u64| HistoryEvent {
        at: wall - ago_ms,
        kind,
        backend: lock.id.backend.clone(),
        source: lock.id.source.clone(),
        resource: lock.id.resource.clone(),
        owner: Some(OwnerId::new(owner)),
        token: Some(FencingToken::new(token.saturating_sub(back))),
        ttl_ms: None,
        stale_after_ms: None,
        not_before: None,
        waiters: None,
        waited_ms: None,
        run: None,
        is_sampled: false,
    };
    let renewals = |ago_ms: i64, count: u32, owner: &str, back| HistoryEvent {
        run: Some(Run {
            count,
            until: wall - ago_ms + i64::from(count - 1) * 10_000,
        }),
        ..event(ago_ms, EventKind::Renewed, owner, back)
    };
    let owner = lock
        .owner_id
        .known()
        .map_or("worker-0", |owner| owner.as_str())
        .to_owned();
    if !is_the_one {
        return (
            vec![event(held, EventKind::Acquired, &owner, 0)],
            Vec::new(),
            Vec::new(),
        );
    }
    let events = vec![
        event(held + 38 * MINUTE, EventKind::Acquired, "worker-12", 3),
        renewals(held + 38 * MINUTE - 10_000, 60, "worker-12", 3),
        event(held + 26 * MINUTE, EventKind::Released, "worker-12", 3),
        event(held + 25 * MINUTE, EventKind::Acquired, "worker-9", 2),
        renewals(held + 25 * MINUTE - 10_000, 46, "worker-9", 2),
        event(held + 17 * MINUTE, EventKind::Released, "worker-9", 2),
        event(held + 17 * MINUTE, EventKind::Acquired, "worker-3", 1),
        renewals(held + 17 * MINUTE - 10_000, 98, "worker-3", 1),
        event(held, EventKind::Expired, "worker-3", 1),
        event(held, EventKind::Reclaimed, &owner, 0),
        renewals(held - 10_000, 246, &owner, 0),
    ];
    let refused = |ago_ms: i64| RejectedWrite {
        at: wall - ago_ms,
        token: FencingToken::new(token.saturating_sub(1)),
        current: Some(FencingToken::new(token)),
        owner: None,
        source: "billing-db".to_owned(),
    };
    let revoked = Revoked {
        at: wall - held - 26 * MINUTE - 300,
        owner: Some(OwnerId::new("worker-12")),
        token: Some(FencingToken::new(token.saturating_sub(3))),
        by: "oncall-1".to_owned(),
        id: "u_1".to_owned(),
    };
    (
        events,
        vec![refused(held - 50_000), refused(held - 170_000)],
        vec![revoked],
    )
}

fn holders(detail: &LockDetail, wall: i64) -> Option<Vec<Holder>> {
    let lock = &detail.lock;
    let holder = Holder {
        owner: lock.owner_id.known().cloned(),
        token: lock.fencing_token.known().copied(),
        since: Some(wall - lock.held_at_least_ms),
    };
    if detail.is_gone() {
        return Some(Vec::new());
    }
    detail.fresh.is_known().then(|| vec![holder])
}

fn waiters(detail: &LockDetail, wall: i64) -> Vec<TimelineWaiter> {
    let fresh = detail.fresh.known();
    let waiters = fresh.map_or(&[][..], |fresh| &fresh.waiters[..]);
    let input = waiters.iter().take(3).map(|waiter| TimelineWaiter {
        owner: waiter.owner_id.clone(),
        since: waiter.waited_ms.known().map(|waited| wall - waited),
        place: waiter.position,
    });
    input.collect()
}

/// 214 holds around four minutes.
fn lengths() -> Vec<i64> {
    let spread = |index: i64| {
        let around = f64::from(u16::try_from((index * 7_919) % 1_000).unwrap_or(0)) / 1_000.0;
        let length = 240_000.0 * (3.0 * (around - 0.5)).exp();
        #[expect(clippy::cast_possible_truncation, reason = "some minutes")]
        let length = length as i64;
        length
    };
    (0..214).map(spread).collect()
}

pub(crate) fn overview(search: &str, now: Moment) -> OverviewCharts {
    let wall = now.wall.timestamp_millis();
    let given = app::links::pairs(search);
    let given = given.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let range =
        TimeRange::from_pairs(given, LastRange::SixHours).unwrap_or(TimeRange::Last(LastRange::SixHours));
    let rejection = |id: i64, ago: i64, resource: &str, token: u64| Rejection {
        id,
        at: wall - ago * MINUTE,
        resource: resource.to_owned(),
        token: FencingToken::new(token),
        current: Some(FencingToken::new(token + 1)),
        owner: Some(OwnerId::new("worker-3")),
        source: "billing-db".to_owned(),
        reason: "stale".to_owned(),
    };
    let rows = [
        rejection(4, 2, "warehouse/eu-west/reindex", 1840),
        rejection(3, 3, "warehouse/eu-west/reindex", 1840),
        rejection(2, 38, "tenant_123:billing-close:2026-04", 1841),
        rejection(1, 40, "\u{202e}<img src=x onerror=alert(1)>", 7),
    ];
    let words = range.words();
    let over = IncidentRange {
        words: &words,
        has_days: false,
    };
    let mut it = Markup::new();
    it.wrap("div", &[("class", "two low")], |it| {
        it.push(&held_chart(range, &words, links(range, search), wall));
        it.wrap("div", &[("class", "stack")], |it| {
            it.push(&recent_incidents::refusals(&rows, 4, over, "/fencing".to_owned()));
            it.push(&recent_incidents::unlocks(
                &[],
                0,
                over,
                "/audit?action=FORCE_UNLOCK".to_owned(),
            ));
        });
    });
    OverviewCharts {
        alerts: String::new(),
        incidents: it.into_string(),
    }
}

/// An ordinary day, with a gap of twenty minutes.
fn held_chart(range: TimeRange, words: &str, end: Markup, wall: i64) -> Markup {
    let scale = range.scale(wall);
    let span = HistorySpan::new(scale.from(), scale.until(), wall);
    let is_blind = |cell: usize| (20..22).contains(&cell);
    let wave = |cell: usize, base: u64, more: u64| base + (u64::try_from(cell).unwrap_or(0) * 7 % 11) * more;
    let cells = (0..span.cells).map(|cell| {
        let watched = u64::try_from(span.passed_ms(cell)).unwrap_or(0);
        Rollup {
            held_ms: wave(cell, 36, 1) * watched,
            waiting_ms: wave(cell, 2, 1) * watched,
            reclaimed: u64::from(cell % 13 == 4),
            ..Rollup::default()
        }
    });
    let watched_ms: Vec<i64> = (0..span.cells)
        .map(|cell| if is_blind(cell) { 0 } else { span.passed_ms(cell) })
        .collect();
    let backend = BackendName::builtin();
    let series = HistorySeries {
        span,
        prefixes: vec![PrefixSeries {
            backend: backend.clone(),
            prefix: "tenant_*:close:*".to_owned(),
            cells: cells.collect(),
            total: Rollup::default(),
        }],
        backends: vec![WatchedSpans {
            backend,
            waits_ms: watched_ms.clone(),
            watched_ms,
        }],
    };
    let mark = |ago: i64, shape, hue, title: &str| Event {
        at: wall - ago * MINUTE,
        shape,
        hue,
        title: title.to_owned(),
        href: None,
    };
    let marks = vec![
        mark(200, "reclaim", "", "1 reclaim"),
        mark(120, "revoke", "", "forced unlock by oncall-1"),
        mark(2, "x", "critical", "a write under token 1840 refused"),
    ];
    let now = held_locks::HeldLocks {
        held: 42,
        waiting: 9,
        is_cut: false,
    };
    held_locks::held_locks_chart(&series, now, marks, words, end)
}

fn links(range: TimeRange, search: &str) -> Markup {
    range_links(range, "", &app::links::pairs(search))
}
