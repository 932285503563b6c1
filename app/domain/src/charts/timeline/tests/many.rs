//! Many rows drawn as few marks, an empty timeline, and rows in any order.

use proptest::prelude::*;

use super::*;
use crate::history::Run;

#[test]
fn renewals_are_ticks_and_runs_of_them_are_thinned_out() {
    // A row for six renewals, single rows, and one row for a hundred thousand.
    let run = |at: i64, until: i64, count| HistoryEvent {
        run: Some(Run {
            count,
            until: until * MINUTE,
        }),
        ..event(at, EventKind::Renewed, "a", 1)
    };
    let grant = event(0, EventKind::Acquired, "a", 1);
    let few = [
        grant.clone(),
        run(10, 20, 6),
        event(30, EventKind::Renewed, "a", 1),
    ];
    let drawn = |events: &[HistoryEvent]| {
        draw(&TimelineInput {
            events,
            holders: Some(&[holder("a", 1, None)]),
            ..TimelineInput::default()
        })
    };
    let timeline = drawn(&few);
    let ticks: Vec<i64> = timeline.lanes[0].blocks[0]
        .ticks
        .iter()
        .map(|at| at / MINUTE)
        .collect();
    assert_eq!((ticks, timeline.per_tick), (vec![10, 12, 14, 16, 18, 20, 30], 1));
    let timeline = drawn(&[grant, run(1, 59, 100_000)]);
    let block = &timeline.lanes[0].blocks[0];
    assert_eq!(block.renewals, 100_000);
    assert!(
        block.ticks.len() < 230 && timeline.per_tick > 400,
        "{} {}",
        block.ticks.len(),
        timeline.per_tick
    );
}

#[test]
fn ten_thousand_rows_become_few_blocks_and_lanes() {
    // 5,000 leases of 40 owners within an hour.
    let mut events = Vec::new();
    for token in 1..=5_000_u64 {
        let who = format!("job-{}", token % 40);
        let at = i64::try_from(token).unwrap() * 700;
        let grant = event(0, EventKind::Acquired, &who, token);
        events.push(HistoryEvent { at, ..grant.clone() });
        let end = event(0, EventKind::Released, &who, token);
        events.push(HistoryEvent { at: at + 500, ..end });
    }
    let timeline = draw(&TimelineInput {
        events: &events,
        holders: Some(&[]),
        ..TimelineInput::default()
    });
    assert_eq!((timeline.lanes.len(), timeline.more), (LANES_MAX, 30));
    let blocks: usize = timeline.lanes.iter().map(|lane| lane.blocks.len()).sum();
    assert!(blocks <= 60, "{blocks}");
    let leases: u32 = timeline
        .lanes
        .iter()
        .flat_map(|lane| &lane.blocks)
        .map(|block| block.leases)
        .sum();
    assert_eq!(leases, 125 * 10, "none is forgotten");
}

#[test]
fn queue_length_holds_between_reports_and_ends_at_a_gap() {
    let waiting = |at, count| HistoryEvent {
        waiters: Some(count),
        ..event(at, EventKind::Waiting, "a", 1)
    };
    let events = [waiting(5, 2), waiting(10, 2), waiting(15, 0), waiting(20, 4)];
    let timeline = draw(&TimelineInput {
        events: &events,
        gaps: &[(30 * MINUTE, 40 * MINUTE)],
        ..TimelineInput::default()
    });
    let drawn: Vec<(i64, i64, u32)> = timeline
        .queue
        .iter()
        .map(|queue| (queue.from / MINUTE, queue.until / MINUTE, queue.count))
        .collect();
    assert_eq!(drawn, [(5, 15, 2), (20, 30, 4)]);
}

#[test]
fn no_history_draws_no_marks() {
    assert!(draw(&TimelineInput::default()).is_empty());
    // A rejected write of unknown time and owner is a mark without a window.
    let timeline = draw(&TimelineInput {
        refused: &[refused(10, 4)],
        ..TimelineInput::default()
    });
    assert_eq!(
        (timeline.lanes[0].refused.len(), timeline.lanes[0].zombies.len()),
        (1, 0)
    );
}

fn any_event() -> impl Strategy<Value = HistoryEvent> {
    let kind = proptest::sample::select(EventKind::ALL.to_vec());
    let who = proptest::sample::select(vec!["", "a", "b", "\u{202e}<script>"]);
    let run = proptest::option::of((0_u32..2_000_000, -100_i64..100));
    (
        -70_i64..130,
        kind,
        who,
        0_u64..4,
        run,
        proptest::option::of(0_u32..9),
        proptest::option::of(-5_i64..90),
    )
        .prop_map(|(at, kind, who, token, run, waiters, waited)| HistoryEvent {
            run: run.map(|(count, length)| Run {
                count,
                until: (at + length) * MINUTE,
            }),
            waiters,
            waited_ms: waited.map(|minutes| minutes * MINUTE),
            ..event(at, kind, who, token)
        })
}

proptest! {
    #[test]
    fn any_events_are_drawn_inside_the_range(mut events in proptest::collection::vec(any_event(), 0..60), now in -10_i64..70, writes in proptest::collection::vec((-10_i64..70, 0_u64..4), 0..6), has_since: bool, is_held in 0_usize..3) {
        // Any rows in order of time, rejected writes, with and without a holder and a
        // beginning.
        events.sort_by_key(|event| event.at);
        let mut refusals: Vec<RejectedWrite> = writes.into_iter().map(|(at, token)| refused(at, token)).collect();
        refusals.sort_by_key(|write| write.at);
        let holders = [holder("a", 3, None)];
        let drawn = TimelineInput {
            events: &events,
            gaps: &[(10 * MINUTE, 12 * MINUTE)],
            refused: &refusals,
            since: has_since.then_some(5 * MINUTE),
            holders: [None, Some(&holders[..]), Some(&[])][is_held],
            ..TimelineInput::default()
        };
        let scale = hour();
        let timeline = Timeline::new(&drawn, scale, now * MINUTE);
        for lane in &timeline.lanes {
            for block in &lane.blocks {
                prop_assert!(block.from <= block.until, "{block:?}");
                prop_assert!(scale.contains(block.from) && scale.contains(block.until), "{block:?}");
                prop_assert!(block.ticks.iter().all(|at| scale.contains(*at)));
            }
            prop_assert!(lane.waits.iter().all(|wait| wait.from <= wait.until && scale.contains(wait.from)));
            prop_assert!(lane.zombies.iter().all(|zombie| zombie.from <= zombie.until && zombie.writes > 0));
        }
        prop_assert!(timeline.per_tick >= 1 && timeline.overlap_ms >= 0);
    }
}
