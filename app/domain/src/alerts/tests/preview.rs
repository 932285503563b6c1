//! Previews: history replayed through rules.

use super::state_machine::{immediate, lock, rule};
use crate::alerts::{
    Condition, CountedEvent, Counts, CurrentState, Gap, HolderNow, PastEvent, Pattern, Playback, Preview,
    RefusedAcquire, Rule, ScanTimes,
};
use crate::history::{HistoryEvent, Run};
use crate::lock_detail::EventKind;
use crate::names::{BackendName, LockId, OwnerId, Source};

pub(super) const S: i64 = 1_000;
pub(super) const H: i64 = 3_600 * S;

/// Every lock is held by this owner now, or free.
pub(super) struct Now(pub(super) Option<&'static str>);

impl CurrentState for Now {
    fn scan_times(&self, _: &BackendName, _: &Source) -> Option<ScanTimes> {
        Some(ScanTimes {
            poll_interval_ms: 2 * S,
            grain_ms: 1,
        })
    }

    fn holder(&self, _: &LockId) -> HolderNow {
        self.0.map_or(HolderNow::Free, |owner| HolderNow::Held {
            owner: Some(owner.to_owned()),
            token: None,
        })
    }

    fn unobserved_since(&self, _: &BackendName) -> Option<i64> {
        None
    }
}

pub(super) fn event(at: i64, kind: EventKind, name: &str) -> HistoryEvent {
    let id = lock(name);
    HistoryEvent {
        at,
        kind,
        backend: id.backend,
        source: id.source,
        resource: id.resource,
        owner: Some(OwnerId::new("w")),
        token: None,
        ttl_ms: Some(30 * S),
        stale_after_ms: None,
        not_before: None,
        waiters: None,
        waited_ms: None,
        run: None,
        is_sampled: false,
    }
}

fn play(rule: &Rule, events: &[HistoryEvent], to: i64) -> Preview {
    play_over_gaps(rule, events, &[], &Now(None), to)
}

/// Replays these events with gaps between them.
pub(super) fn play_over_gaps(
    rule: &Rule,
    events: &[HistoryEvent],
    gaps: &[(i64, i64)],
    present: &Now,
    to: i64,
) -> Preview {
    let of_all = |(began, ended): &(i64, i64)| Gap {
        backend: None,
        began: *began,
        ended: *ended,
    };
    let gaps: Vec<Gap> = gaps.iter().map(of_all).collect();
    play_gaps(rule, events, &gaps, present, to)
}

/// The same with gaps of single backends.
pub(super) fn play_gaps(
    rule: &Rule,
    events: &[HistoryEvent],
    gaps: &[Gap],
    present: &Now,
    to: i64,
) -> Preview {
    let mut playback = Playback::new([rule], 0, to);
    let mut gaps = gaps.iter().peekable();
    for event in events {
        while let Some(gap) = gaps.next_if(|gap| gap.began <= event.at) {
            playback.gap(gap);
        }
        feed(&mut playback, present, event);
    }
    gaps.for_each(|gap| playback.gap(gap));
    playback.finish(present, to).remove(0)
}

pub(super) fn feed(playback: &mut Playback, present: &Now, event: &HistoryEvent) {
    let names = (event.backend.as_str(), event.source.as_str());
    let token = event.token.map(|token| token.to_string());
    let row = PastEvent {
        at: event.at,
        kind: event.kind,
        owner: event.owner.as_ref().map(OwnerId::as_str),
        token: token.as_deref(),
        ttl_ms: event.ttl_ms,
        ttl_seen_ms: None,
        stale_after_ms: event.stale_after_ms,
        not_before: event.not_before,
        waiters: event.waiters,
        run: event.run,
    };
    playback.event(present, names, event.resource.as_bytes(), &row);
}

/// Twenty holds of a minute, an hour apart; then one of ten minutes.
fn usual_then_long() -> Vec<HistoryEvent> {
    let mut events = Vec::new();
    for n in 0..20 {
        events.push(event(n * H, EventKind::Acquired, "a"));
        events.push(event(n * H + 60 * S, EventKind::Released, "a"));
    }
    events.push(event(20 * H, EventKind::Acquired, "a"));
    events.push(event(20 * H + 600 * S, EventKind::Released, "a"));
    events
}

#[test]
fn an_unusually_long_hold_fires_once_at_three_times_its_p95() {
    // By its own p95 of one minute; then with a `for` that the hold exceeds, and one that it
    // does not.
    let mut rule = rule("long_held");
    let seen = play(&rule, &usual_then_long(), 24 * H);
    assert_eq!(seen.count, 1);
    let firing = &seen.firings[0];
    assert!((firing.at - (20 * H + 180 * S)).abs() <= 1_000, "{}", firing.at);
    assert_eq!(firing.until, Some(20 * H + 600 * S));
    assert_eq!((seen.locks, seen.acquisitions, seen.without_ttl), (1, 21, 0));
    rule.timing.for_ms = 120 * S;
    let later = play(&rule, &usual_then_long(), 24 * H);
    assert!((later.firings[0].at - (20 * H + 300 * S)).abs() <= 1_000);
    rule.timing.for_ms = 600 * S;
    assert_eq!(play(&rule, &usual_then_long(), 24 * H).count, 0);
}

#[test]
fn silence_after_a_renewal_rhythm_fires_before_the_end() {
    // Renewed every 10 s of 30 s a hundred times, folded into one row; then it expires. Another
    // is released in time.
    let run = |count: u32, from: i64| HistoryEvent {
        run: Some(Run {
            count,
            until: from + i64::from(count - 1) * 10 * S,
        }),
        ..event(from, EventKind::Renewed, "a")
    };
    let mut events = vec![event(0, EventKind::Acquired, "a"), run(100, 10 * S)];
    let end = 1_000 * S + 30 * S;
    events.push(event(end, EventKind::Expired, "a"));
    for id in ["near_expiry", "not_renewing"] {
        let seen = play(&immediate(id), &events, H);
        assert_eq!(seen.count, 1, "{id}");
        assert!(seen.firings[0].at <= end - 5 * S, "{id}: {}", seen.firings[0].at);
    }
    events[2] = event(1_004 * S, EventKind::Released, "a");
    assert_eq!(play(&rule("near_expiry"), &events, H).count, 0);
}

#[test]
fn a_lease_that_usually_ends_in_time_is_not_near_expiry() {
    // TTL of 30 s, never renewed, held for 28 s as usual: less than an eighth is left. Then one
    // that runs out, and, on another lock, the first hold of all.
    let mut events = Vec::new();
    for n in 0..20 {
        events.push(event(n * 60 * S, EventKind::Acquired, "a"));
        events.push(event(n * 60 * S + 28 * S, EventKind::Released, "a"));
    }
    let firings = |events: &[HistoryEvent]| {
        let seen = play(&immediate("near_expiry"), events, H);
        seen.firings.iter().map(|firing| firing.at).collect::<Vec<_>>()
    };
    // Unknown until eight holds were recorded.
    let while_unknown: Vec<i64> = (0..8).map(|n| n * 60 * S + 27 * S).collect();
    assert_eq!(firings(&events), while_unknown);
    events.push(event(20 * 60 * S, EventKind::Acquired, "a"));
    events.push(event(20 * 60 * S + 30 * S, EventKind::Expired, "a"));
    assert_eq!(firings(&events)[8..], [20 * 60 * S + 29 * S]);
    events.push(event(30 * 60 * S, EventKind::Acquired, "b"));
    events.push(event(30 * 60 * S + 28 * S, EventKind::Released, "b"));
    assert_eq!(firings(&events)[9..], [30 * 60 * S + 27 * S]);
}

#[test]
fn a_lease_that_usually_runs_out_is_not_near_expiry() {
    // TTL of 30 s, never renewed: it runs out each time, as a guard of a periodic job does. Reported for the prefix.
    let mut events = Vec::new();
    for n in 0..20 {
        events.push(event(n * 60 * S, EventKind::Acquired, "a"));
        events.push(event(n * 60 * S + 30 * S, EventKind::Expired, "a"));
    }
    // Unknown until eight holds were recorded.
    let seen = play(&immediate("near_expiry"), &events, H);
    let fired: Vec<i64> = seen.firings.iter().map(|firing| firing.at).collect();
    let while_unknown: Vec<i64> = (0..8).map(|n| n * 60 * S + 27 * S).collect();
    assert_eq!(fired, while_unknown);
    assert_eq!(play(&rule("hold_near_ttl"), &events, H).count, 1);
}

#[test]
fn rows_without_a_ttl_are_counted_and_a_gap_fires_nothing() {
    // The same without TTLs; then a long hold, most of which lies in a gap.
    let blind: Vec<HistoryEvent> = usual_then_long()
        .into_iter()
        .map(|event| HistoryEvent {
            ttl_ms: None,
            ..event
        })
        .collect();
    let seen = play(&rule("near_expiry"), &blind, 24 * H);
    assert_eq!((seen.count, seen.acquisitions, seen.without_ttl), (0, 21, 21));
    let mut still_held = usual_then_long();
    still_held.pop();
    let gap = (20 * H + 60 * S, 23 * H);
    let seen = play_over_gaps(&rule("long_held"), &still_held, &[gap], &Now(None), 24 * H);
    assert_eq!(seen.count, 0);
    assert_eq!(seen.gaps, [gap]);
}

#[test]
fn contention_and_losses_would_have_fired_in_their_window() {
    // Ten holdings in two minutes, eight of them with waiters; four lost leases.
    let mut events = Vec::new();
    for n in 0..10 {
        let (at, name) = (H + n * 12 * S, format!("jobs/{n}"));
        events.push(event(at, EventKind::Acquired, &name));
        if n < 8 {
            events.push(event(at + S, EventKind::Waiting, &name));
        }
        let end = if n < 4 {
            EventKind::Expired
        } else {
            EventKind::Released
        };
        events.push(event(at + 11 * S, end, &name));
    }
    let contended = play(&rule("contention"), &events, 2 * H);
    assert_eq!(contended.count, 1);
    assert!(contended.series.iter().any(|point| point.measure >= Some(800)));
    let mut losses = rule("lease_losses");
    losses.condition.values[0] = Some(3);
    let lost = play(&losses, &events, 2 * H);
    assert_eq!(lost.count, 1);
    assert!(lost.firings[0].until.is_some());
}

#[test]
fn refused_acquires_count_as_contention_of_their_template() {
    // One holding and nine refusals, which have no events; a rule on this one name counts none
    // of them.
    let fires = |prefix: &str| {
        let mut rule = rule("contention");
        rule.scope.prefix = Pattern::parse(prefix).unwrap();
        let mut playback = Playback::new([&rule], 0, 2 * H);
        let refused = [RefusedAcquire {
            at: H,
            backend: BackendName::builtin(),
            prefix: "jobs/*".to_owned(),
            times: 9,
        }];
        playback.refused(0, &refused);
        feed(
            &mut playback,
            &Now(None),
            &event(H, EventKind::Acquired, "jobs/1"),
        );
        playback.finish(&Now(None), 2 * H)[0].count
    };
    assert_eq!((fires(""), fires("jobs/"), fires("jobs/1")), (1, 1, 0));
}

fn rejection(at: i64, name: &str, times: u32) -> CountedEvent {
    let id = lock(name);
    CountedEvent {
        at,
        what: Counts::Rejection { is_older: true },
        backend: id.backend.clone(),
        lock: Some(id),
        owner: None,
        times,
        how: String::new(),
    }
}

#[test]
fn a_flood_of_one_lock_hides_no_rejection_of_another() {
    // 2,000 seconds of a busy lock around one rejection of an idle one; the window is ten
    // minutes.
    let mut rule = rule("fencing_rejections");
    rule.condition = Condition::default_of(rule.condition.kind);
    let mut all: Vec<CountedEvent> = (0..2_000).map(|n| rejection(H + n * S, "loud", 8)).collect();
    all.insert(500, rejection(H + 499 * S + 1, "quiet", 1));
    let preview = Preview::of_counts(&rule, (0, 3 * H), &all);
    let of = |name: &str| {
        let firings = preview
            .firings
            .iter()
            .filter(|firing| firing.subject.display_name() == name);
        firings
            .map(|firing| (firing.at, firing.until))
            .collect::<Vec<_>>()
    };
    let window = 300 * S;
    // Evaluations happen at whole seconds.
    assert_eq!(of("quiet"), [(H + 500 * S, Some(H + 500 * S + window))]);
    assert_eq!(of("loud"), [(H, Some(H + 1_999 * S + window))]);
    assert_eq!(preview.events, 16_001);
}

#[test]
fn a_count_condition_fires_after_its_for_without_a_new_event() {
    // Two failures count for the length of the window; the rule requires a minute of it.
    let mut rule = rule("fencing_rejections");
    rule.timing.for_ms = 60 * S;
    let preview = Preview::of_counts(&rule, (0, H), &[rejection(600 * S, "a", 1)]);
    assert_eq!(preview.firings[0].at, 660 * S);
    assert_eq!(preview.firings[0].until, Some(900 * S));
}
