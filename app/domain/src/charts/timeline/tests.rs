use proptest::prelude::*;

use super::*;
use crate::detail::EventKind;
use crate::history::Run;
use crate::names::{BackendName, Resource, Source};

const MINUTE: i64 = 60_000;

fn owner(name: &str) -> Option<OwnerId> {
    Some(OwnerId::new(name))
}

fn event(at: i64, kind: EventKind, who: &str, token: u64) -> HistoryEvent {
    HistoryEvent {
        at: at * MINUTE,
        kind,
        backend: BackendName::builtin(),
        source: Source::fixed("lease"),
        resource: Resource::from("r"),
        owner: (!who.is_empty()).then(|| OwnerId::new(who)),
        token: (token > 0).then(|| FencingToken::new(token)),
        ttl_ms: None,
        waiters: None,
        waited_ms: None,
        run: None,
        is_sampled: false,
    }
}

fn refused(at: i64, token: u64) -> Refused {
    Refused {
        at: at * MINUTE,
        token: FencingToken::new(token),
        current: Some(FencingToken::new(token + 1)),
        owner: None,
        source: "ledger-db".to_owned(),
    }
}

fn holder(who: &str, token: u64, since: Option<i64>) -> Holder {
    Holder {
        owner: owner(who),
        token: Some(FencingToken::new(token)),
        since: since.map(|at| at * MINUTE),
    }
}

fn hour() -> TimeScale {
    TimeScale::new(0, 60 * MINUTE)
}

fn draw(told: &Told<'_>) -> Timeline {
    Timeline::of(told, hour(), 60 * MINUTE)
}

/// Owner, minutes, end of each block, in the order of the lanes.
fn shown(timeline: &Timeline) -> Vec<(String, i64, i64, End)> {
    let blocks = timeline.lanes.iter().flat_map(|lane| &lane.blocks);
    blocks
        .map(|block| {
            let owner = block.owner.as_ref().map_or("?", OwnerId::as_str).to_owned();
            (
                owner,
                block.from / MINUTE,
                block.until / MINUTE,
                block.end.clone(),
            )
        })
        .collect()
}

#[test]
fn the_present_holder_comes_first_and_a_zombie_is_told() {
    // w3 runs out at 20, w7 takes it over; w3 writes twice more and is refused.
    let events = [
        event(5, EventKind::Acquired, "w9", 1),
        event(9, EventKind::Released, "w9", 1),
        event(10, EventKind::Acquired, "w3", 2),
        event(20, EventKind::Expired, "w3", 2),
        event(20, EventKind::Reclaimed, "w7", 3),
    ];
    let timeline = draw(&Told {
        events: &events,
        refused: &[refused(22, 2), refused(24, 2)],
        holders: Some(&[holder("w7", 3, Some(20))]),
        waiters: &[Waiter {
            owner: OwnerId::new("w9"),
            since: Some(30 * MINUTE),
            place: 1,
        }],
        ..Told::default()
    });
    assert_eq!(
        shown(&timeline),
        [
            ("w7".to_owned(), 20, 60, End::Now),
            ("w9".to_owned(), 5, 9, End::Released),
            ("w3".to_owned(), 10, 20, End::Expired),
        ]
    );
    assert!(timeline.lanes[0].blocks[0].is_reclaim);
    assert_eq!(
        timeline.worst_zombie(),
        Some(&Zombie {
            from: 20 * MINUTE,
            until: 24 * MINUTE,
            token: FencingToken::new(2),
            writes: 2
        })
    );
    assert_eq!(
        (timeline.lanes[1].waits[0].from / MINUTE, timeline.overlap_ms()),
        (30, 0)
    );
}

#[test]
fn a_wait_that_ended_with_a_grant_is_drawn_up_to_it() {
    // b waited ten minutes for a's lock, from before the range; then fifty short waits besides the one of b: the longest stay.
    let waited = |at: i64, minutes: i64, who: &str, token| HistoryEvent {
        waited_ms: Some(minutes * MINUTE),
        ..event(at, EventKind::GrantedAfterWait, who, token)
    };
    let mut events = vec![
        event(-5, EventKind::Acquired, "a", 1),
        event(5, EventKind::Released, "a", 1),
        event(5, EventKind::Acquired, "b", 2),
        waited(5, 10, "b", 2),
        // The wait of a kind that has none.
        HistoryEvent {
            waited_ms: Some(MINUTE),
            ..event(6, EventKind::Renewed, "b", 2)
        },
    ];
    let timeline = draw(&Told {
        events: &events,
        holders: Some(&[holder("b", 2, None)]),
        ..Told::default()
    });
    let waits: Vec<&Wait> = timeline.lanes.iter().flat_map(|lane| &lane.waits).collect();
    let expected = Wait {
        from: 0,
        until: 5 * MINUTE,
        place: None,
        is_cut: true,
        is_told: true,
    };
    assert_eq!((waits, timeline.waits_left_out), (vec![&expected], 0));
    assert_eq!(shown(&timeline)[0], ("b".to_owned(), 5, 60, End::Now));
    events.extend((0..50).map(|at| waited(8 + at, 1, "c", 3)));
    let timeline = draw(&Told {
        events: &events,
        ..Told::default()
    });
    let drawn: usize = timeline.lanes.iter().map(|lane| lane.waits.len()).sum();
    assert_eq!((drawn, timeline.waits_left_out), (40, 11));
    assert!(timeline.lanes.iter().any(|lane| lane.waits.contains(&expected)));
}

#[test]
fn a_write_refused_before_we_saw_the_end_is_a_zombies_all_the_same() {
    // We look now and then: the lock was lost before 20, where we saw it. A newer token at 18 proves it; without one nothing does.
    let events = [
        event(10, EventKind::Acquired, "w3", 2),
        event(20, EventKind::Released, "w3", 2),
        event(20, EventKind::Acquired, "w7", 3),
    ];
    let zombies = |current| {
        let write = Refused {
            current,
            ..refused(18, 2)
        };
        let timeline = draw(&Told {
            events: &events,
            refused: &[write],
            holders: Some(&[holder("w7", 3, Some(20))]),
            ..Told::default()
        });
        timeline
            .worst_zombie()
            .map(|zombie| (zombie.from / MINUTE, zombie.until / MINUTE))
    };
    assert_eq!(zombies(Some(FencingToken::new(3))), Some((18, 18)));
    assert_eq!(zombies(None), None);
    assert_eq!(zombies(Some(FencingToken::new(2))), None);
}

#[test]
fn a_gap_in_the_middle_ends_what_is_not_heard_of_again_and_not_what_is() {
    // a and b are both open when watching stops; b is heard of again, then somebody else has it.
    let events = [
        event(5, EventKind::Acquired, "a", 1),
        event(40, EventKind::Acquired, "b", 2),
        event(55, EventKind::Renewed, "b", 2),
    ];
    let timeline = draw(&Told {
        events: &events,
        gaps: &[(10 * MINUTE, 30 * MINUTE), (45 * MINUTE, 50 * MINUTE)],
        holders: Some(&[holder("b", 2, None)]),
        ..Told::default()
    });
    assert_eq!(
        shown(&timeline),
        [
            ("b".to_owned(), 40, 60, End::Now),
            ("a".to_owned(), 5, 10, End::Unseen)
        ]
    );
    assert_eq!(timeline.gaps.len(), 2);
}

#[test]
fn what_began_before_the_history_begins_at_its_edge_unseen() {
    // A release and a renewal of leases whose grants nobody saw; and a holder of whom there is no row at all.
    let told = Told {
        since: Some(10 * MINUTE),
        ..Told::default()
    };
    let events = [event(20, EventKind::Released, "a", 1)];
    let timeline = draw(&Told {
        events: &events,
        holders: Some(&[]),
        ..told
    });
    assert_eq!(shown(&timeline), [("a".to_owned(), 10, 20, End::Released)]);
    assert_eq!(timeline.lanes[0].blocks[0].begin, Begin::Unseen);
    assert_eq!(timeline.gaps, [(0, 10 * MINUTE)]);
    let holders = [holder("b", 7, Some(-500))];
    let timeline = draw(&Told {
        holders: Some(&holders),
        ..told
    });
    assert_eq!(shown(&timeline), [("b".to_owned(), 0, 60, End::Now)]);
    assert_eq!(timeline.lanes[0].blocks[0].begin, Begin::Unseen);
}

#[test]
fn an_owner_that_is_not_told_has_a_lane_of_its_own() {
    // Without tokens: the ends find their grants all the same.
    let events = [
        event(5, EventKind::Acquired, "", 0),
        event(9, EventKind::Released, "", 0),
        event(10, EventKind::Acquired, "", 0),
        event(12, EventKind::Expired, "", 0),
    ];
    let timeline = draw(&Told {
        events: &events,
        holders: Some(&[]),
        ..Told::default()
    });
    assert_eq!((timeline.lanes.len(), &timeline.lanes[0].owner), (1, &None));
    assert_eq!(
        shown(&timeline),
        [
            ("?".to_owned(), 5, 9, End::Released),
            ("?".to_owned(), 10, 12, End::Expired)
        ]
    );
}

#[test]
fn two_that_both_renew_stand_beside_each_other() {
    // b is granted it while a goes on renewing until 30: both believed for ten minutes.
    let events = [
        event(5, EventKind::Acquired, "a", 1),
        event(20, EventKind::Acquired, "b", 2),
        event(30, EventKind::Renewed, "a", 1),
        event(31, EventKind::Renewed, "b", 2),
    ];
    let timeline = draw(&Told {
        events: &events,
        holders: Some(&[holder("b", 2, None)]),
        ..Told::default()
    });
    assert_eq!(
        shown(&timeline),
        [
            ("b".to_owned(), 20, 60, End::Now),
            ("a".to_owned(), 5, 30, End::Unseen)
        ]
    );
    assert_eq!(timeline.overlap_ms(), 10 * MINUTE);
    let both = [holder("a", 1, None), holder("b", 2, None)];
    let timeline = draw(&Told {
        events: &events,
        holders: Some(&both),
        ..Told::default()
    });
    assert_eq!(timeline.overlap_ms(), 40 * MINUTE);
}

#[test]
fn a_forced_unlock_ends_the_lease_that_it_was_about() {
    // What watching saw was a release, a moment later.
    let events = [
        event(5, EventKind::Acquired, "a", 1),
        event(20, EventKind::Released, "a", 1),
    ];
    let revoked = [Revoked {
        at: 20 * MINUTE - 400,
        owner: owner("a"),
        token: Some(FencingToken::new(1)),
        by: "oncall".to_owned(),
        id: "u_1".to_owned(),
    }];
    let timeline = draw(&Told {
        events: &events,
        revoked: &revoked,
        holders: Some(&[]),
        ..Told::default()
    });
    let block = &timeline.lanes[0].blocks[0];
    assert_eq!(block.until, 20 * MINUTE - 400);
    assert!(matches!(&block.end, End::Revoked { by, .. } if by == "oncall"));
}

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
    let told = |events: &[HistoryEvent]| {
        draw(&Told {
            events,
            holders: Some(&[holder("a", 1, None)]),
            ..Told::default()
        })
    };
    let timeline = told(&few);
    let ticks: Vec<i64> = timeline.lanes[0].blocks[0]
        .ticks
        .iter()
        .map(|at| at / MINUTE)
        .collect();
    assert_eq!((ticks, timeline.per_tick), (vec![10, 12, 14, 16, 18, 20, 30], 1));
    let timeline = told(&[grant, run(1, 59, 100_000)]);
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
    let timeline = draw(&Told {
        events: &events,
        holders: Some(&[]),
        ..Told::default()
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
fn who_waits_is_a_line_between_two_tellings_and_ends_where_nobody_watched() {
    let waiting = |at, count| HistoryEvent {
        waiters: Some(count),
        ..event(at, EventKind::Waiting, "a", 1)
    };
    let events = [waiting(5, 2), waiting(10, 2), waiting(15, 0), waiting(20, 4)];
    let timeline = draw(&Told {
        events: &events,
        gaps: &[(30 * MINUTE, 40 * MINUTE)],
        ..Told::default()
    });
    let told: Vec<(i64, i64, u32)> = timeline
        .queue
        .iter()
        .map(|queue| (queue.from / MINUTE, queue.until / MINUTE, queue.count))
        .collect();
    assert_eq!(told, [(5, 15, 2), (20, 30, 4)]);
}

#[test]
fn nothing_known_is_nothing_drawn() {
    assert!(draw(&Told::default()).is_empty());
    // A refused write of an unknown time and owner is a mark without a window.
    let timeline = draw(&Told {
        refused: &[refused(10, 4)],
        ..Told::default()
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
    fn whatever_happened_is_drawn_inside_the_range(mut events in proptest::collection::vec(any_event(), 0..60), now in -10_i64..70, writes in proptest::collection::vec((-10_i64..70, 0_u64..4), 0..6), has_since: bool, is_held in 0_usize..3) {
        // Any rows in order of time, refused writes, with and without a holder and a beginning.
        events.sort_by_key(|event| event.at);
        let mut refusals: Vec<Refused> = writes.into_iter().map(|(at, token)| refused(at, token)).collect();
        refusals.sort_by_key(|write| write.at);
        let holders = [holder("a", 3, None)];
        let told = Told {
            events: &events,
            gaps: &[(10 * MINUTE, 12 * MINUTE)],
            refused: &refusals,
            since: has_since.then_some(5 * MINUTE),
            holders: [None, Some(&holders[..]), Some(&[])][is_held],
            ..Told::default()
        };
        let scale = hour();
        let timeline = Timeline::of(&told, scale, now * MINUTE);
        for lane in &timeline.lanes {
            for block in &lane.blocks {
                prop_assert!(block.from <= block.until, "{block:?}");
                prop_assert!(scale.contains(block.from) && scale.contains(block.until), "{block:?}");
                prop_assert!(block.ticks.iter().all(|at| scale.contains(*at)));
            }
            prop_assert!(lane.waits.iter().all(|wait| wait.from <= wait.until && scale.contains(wait.from)));
            prop_assert!(lane.zombies.iter().all(|zombie| zombie.from <= zombie.until && zombie.writes > 0));
        }
        prop_assert!(timeline.per_tick >= 1 && timeline.overlap_ms() >= 0);
    }
}
