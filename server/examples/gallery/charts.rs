//! Made-up histories for the charts: a full timeline for one lock, and a single event for the others.

use domain::charts::durations::{DurationChart, DurationsOf, Holds};
use domain::charts::held_locks::{ChartEvent, HeldLocksChart, HeldNow};
use domain::charts::range::RangePreset;
use domain::charts::shown_range::ShownRange;
use domain::charts::timeline::{Holder, RejectedWrite, Revoked, Timeline, TimelineInput, TimelineWaiter};
use domain::fencing_rejections::Rejection;
use domain::history::rollup::Rollup;
use domain::history::series::{HistorySeries, HistorySpan, PrefixSeries, WatchedSpans};
use domain::history::{HistoryEvent, Run};
use domain::lock::Lock;
use domain::lock_detail::{EventKind, LockCharts, LockDetail, LockHistory};
use domain::names::{BackendName, OwnerId};
use domain::overview::{FiringAlerts, OverviewCharts, RecentRejections, RecentUnlocks};
use domain::state::LockState;
use domain::token::FencingToken;

use crate::canned::Moment;

const MINUTE: i64 = 60_000;

pub(crate) fn lock_charts(detail: &LockDetail, search: &str, now: Moment) -> LockCharts {
    let lock = &detail.lock;
    let (wall, pairs) = (now.wall.timestamp_millis(), app::links::pairs(search));
    let range = ShownRange::from_pairs(&pairs, RangePreset::SixHours, None, wall);
    let (events, refused, revoked) = history(lock, wall);
    let holders = holders(detail, wall);
    let waiters = waiters(detail, wall);
    let input = TimelineInput {
        events: &events,
        gaps: &[(wall - 300 * MINUTE, wall - 280 * MINUTE)],
        refused: &refused,
        is_refused_unread: false,
        revoked: &revoked,
        holders: holders.as_deref(),
        is_shared: false,
        waiters: &waiters,
        since: Some(wall - 340 * MINUTE),
    };
    let is_long = lock.state == LockState::LongHeld;
    let holds = Holds::new(if is_long { hold_lengths_ms() } else { Vec::new() });
    let held_ms = (!detail.is_gone()).then_some(lock.held_at_least_ms);
    let history = LockHistory {
        ownership: Timeline::new(&input, range.scale, wall),
        hold_times: DurationChart::new(&holds, held_ms, DurationsOf::ThisLock),
        wait_times: DurationChart::new(&Holds::default(), None, DurationsOf::ThisLock),
    };
    LockCharts {
        range,
        history: Some(history),
        may_audit: true,
        trace_links: Vec::new(),
    }
}

/// Four owners, one of which writes for nearly three minutes after it lost the lock.
fn history(lock: &Lock, wall: i64) -> (Vec<HistoryEvent>, Vec<RejectedWrite>, Vec<Revoked>) {
    let is_billing_close = lock.id.resource.text() == "tenant_123:billing-close:2026-04";
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
    if !is_billing_close {
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
fn hold_lengths_ms() -> Vec<i64> {
    let length_ms = |index: i64| {
        let fraction = f64::from(u16::try_from((index * 7_919) % 1_000).unwrap_or(0)) / 1_000.0;
        let length = 240_000.0 * (3.0 * (fraction - 0.5)).exp();
        #[expect(clippy::cast_possible_truncation, reason = "some minutes")]
        let length = length as i64;
        length
    };
    (0..214).map(length_ms).collect()
}

pub(crate) fn overview(search: &str, now: Moment) -> OverviewCharts {
    let wall = now.wall.timestamp_millis();
    let range = ShownRange::from_pairs(&app::links::pairs(search), RangePreset::SixHours, None, wall);
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
    let rejections = vec![
        rejection(4, 2, "warehouse/eu-west/reindex", 1840),
        rejection(3, 3, "warehouse/eu-west/reindex", 1840),
        rejection(2, 38, "tenant_123:billing-close:2026-04", 1841),
        rejection(1, 40, "\u{202e}<img src=x onerror=alert(1)>", 7),
    ];
    OverviewCharts {
        alerts: Some(FiringAlerts::default()),
        held: Some(held(&range, wall)),
        rejections: Some(RecentRejections {
            total: 4,
            newest: rejections,
        }),
        unlocks: Some(RecentUnlocks::default()),
        may_audit: true,
        range,
    }
}

/// A day like any other, with twenty minutes without observations.
fn held(range: &ShownRange, wall: i64) -> HeldLocksChart {
    let span = HistorySpan::new(range.scale.from(), range.scale.until(), wall);
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
    let at = |ago: i64| wall - ago * MINUTE;
    let events = vec![
        ChartEvent::Reclaims {
            from: at(205),
            until: at(195),
            count: 1,
        },
        ChartEvent::ForcedUnlock {
            at: at(120),
            by: "oncall-1".to_owned(),
            id: "u_1".to_owned(),
        },
        ChartEvent::Rejection {
            at: at(2),
            token: FencingToken::new(1840),
            resource: "warehouse/eu-west/reindex".to_owned(),
        },
    ];
    let now = HeldNow {
        held: 42,
        waiting: 9,
        is_cut: false,
    };
    HeldLocksChart::new(&series, now, events)
}
