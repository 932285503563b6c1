//! Timelines from rows of history: leases, their ends, gaps and zombie windows.

use super::*;
use crate::lock_detail::EventKind;
use crate::names::{BackendName, Resource, Source};

mod many;
mod shared;

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
        stale_after_ms: None,
        not_before: None,
        waiters: None,
        waited_ms: None,
        run: None,
        is_sampled: false,
    }
}

fn refused(at: i64, token: u64) -> RejectedWrite {
    RejectedWrite {
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

fn draw(input: &TimelineInput<'_>) -> Timeline {
    Timeline::new(input, hour(), 60 * MINUTE)
}

/// Owner, minutes and end of each block, in lane order.
fn drawn_blocks(timeline: &Timeline) -> Vec<(String, i64, i64, End)> {
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
fn current_holder_comes_first_and_zombie_window_is_drawn() {
    // w3 expires at 20, w7 acquires; w3 writes twice more and is rejected.
    let events = [
        event(5, EventKind::Acquired, "w9", 1),
        event(9, EventKind::Released, "w9", 1),
        event(10, EventKind::Acquired, "w3", 2),
        event(20, EventKind::Expired, "w3", 2),
        event(20, EventKind::Reclaimed, "w7", 3),
    ];
    let timeline = draw(&TimelineInput {
        events: &events,
        refused: &[refused(22, 2), refused(24, 2)],
        holders: Some(&[holder("w7", 3, Some(20))]),
        waiters: &[TimelineWaiter {
            owner: OwnerId::new("w9"),
            since: Some(30 * MINUTE),
            place: 1,
        }],
        ..TimelineInput::default()
    });
    assert_eq!(
        drawn_blocks(&timeline),
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
        (timeline.lanes[1].waits[0].from / MINUTE, timeline.overlap_ms),
        (30, 0)
    );
}

#[test]
fn a_wait_that_ended_with_a_grant_is_drawn_up_to_it() {
    // b waited ten minutes for a's lock, from before the range; then fifty short waits besides
    // b's: the longest stay.
    let waited = |at: i64, minutes: i64, who: &str, token| HistoryEvent {
        waited_ms: Some(minutes * MINUTE),
        ..event(at, EventKind::GrantedAfterWait, who, token)
    };
    let mut events = vec![
        event(-5, EventKind::Acquired, "a", 1),
        event(5, EventKind::Released, "a", 1),
        event(5, EventKind::Acquired, "b", 2),
        waited(5, 10, "b", 2),
        // A wait of a kind without a duration.
        HistoryEvent {
            waited_ms: Some(MINUTE),
            ..event(6, EventKind::Renewed, "b", 2)
        },
    ];
    let timeline = draw(&TimelineInput {
        events: &events,
        holders: Some(&[holder("b", 2, None)]),
        ..TimelineInput::default()
    });
    let waits: Vec<&Wait> = timeline.lanes.iter().flat_map(|lane| &lane.waits).collect();
    let expected = Wait {
        from: 0,
        until: 5 * MINUTE,
        place: None,
        is_cut: true,
        is_begin_known: true,
    };
    assert_eq!((waits, timeline.left_out.as_str()), (vec![&expected], ""));
    assert_eq!(drawn_blocks(&timeline)[0], ("b".to_owned(), 5, 60, End::Now));
    events.extend((0..50).map(|at| waited(8 + at, 1, "c", 3)));
    let timeline = draw(&TimelineInput {
        events: &events,
        ..TimelineInput::default()
    });
    let drawn: usize = timeline.lanes.iter().map(|lane| lane.waits.len()).sum();
    let left_out = "; 11 shorter waits are not drawn";
    assert_eq!((drawn, timeline.left_out.as_str()), (40, left_out));
    assert!(timeline.lanes.iter().any(|lane| lane.waits.contains(&expected)));
}

#[test]
fn a_rejection_before_the_observed_end_has_a_zombie_window() {
    // The lock was lost before 20, when a scan observed it. A newer token at 18 proves the
    // loss; without one there is no proof.
    let events = [
        event(10, EventKind::Acquired, "w3", 2),
        event(20, EventKind::Released, "w3", 2),
        event(20, EventKind::Acquired, "w7", 3),
    ];
    let zombies = |current| {
        let write = RejectedWrite {
            current,
            ..refused(18, 2)
        };
        let timeline = draw(&TimelineInput {
            events: &events,
            refused: &[write],
            holders: Some(&[holder("w7", 3, Some(20))]),
            ..TimelineInput::default()
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
fn a_gap_ends_only_leases_without_later_events() {
    // a and b are both open when observation stops; b appears again, then another owner has the
    // lock.
    let events = [
        event(5, EventKind::Acquired, "a", 1),
        event(40, EventKind::Acquired, "b", 2),
        event(55, EventKind::Renewed, "b", 2),
    ];
    let timeline = draw(&TimelineInput {
        events: &events,
        gaps: &[(10 * MINUTE, 30 * MINUTE), (45 * MINUTE, 50 * MINUTE)],
        holders: Some(&[holder("b", 2, None)]),
        ..TimelineInput::default()
    });
    assert_eq!(
        drawn_blocks(&timeline),
        [
            ("b".to_owned(), 40, 60, End::Now),
            ("a".to_owned(), 5, 10, End::Unseen)
        ]
    );
    assert_eq!(timeline.gaps.len(), 2);
}

#[test]
fn leases_from_before_the_history_begin_at_its_edge() {
    // A release and a renewal of leases without observed grants; and a holder without any row.
    let input = TimelineInput {
        since: Some(10 * MINUTE),
        ..TimelineInput::default()
    };
    let events = [event(20, EventKind::Released, "a", 1)];
    let timeline = draw(&TimelineInput {
        events: &events,
        holders: Some(&[]),
        ..input
    });
    assert_eq!(drawn_blocks(&timeline), [("a".to_owned(), 10, 20, End::Released)]);
    assert_eq!(timeline.lanes[0].blocks[0].begin, Begin::Unseen);
    assert_eq!(timeline.gaps, [(0, 10 * MINUTE)]);
    let holders = [holder("b", 7, Some(-500))];
    let timeline = draw(&TimelineInput {
        holders: Some(&holders),
        ..input
    });
    assert_eq!(drawn_blocks(&timeline), [("b".to_owned(), 0, 60, End::Now)]);
    assert_eq!(timeline.lanes[0].blocks[0].begin, Begin::Unseen);
}

#[test]
fn an_unreported_owner_has_its_own_lane() {
    // Without tokens, ends still match their grants.
    let events = [
        event(5, EventKind::Acquired, "", 0),
        event(9, EventKind::Released, "", 0),
        event(10, EventKind::Acquired, "", 0),
        event(12, EventKind::Expired, "", 0),
    ];
    let timeline = draw(&TimelineInput {
        events: &events,
        holders: Some(&[]),
        ..TimelineInput::default()
    });
    assert_eq!((timeline.lanes.len(), &timeline.lanes[0].owner), (1, &None));
    assert_eq!(
        drawn_blocks(&timeline),
        [
            ("?".to_owned(), 5, 9, End::Released),
            ("?".to_owned(), 10, 12, End::Expired)
        ]
    );
}

#[test]
fn two_renewing_owners_overlap() {
    // b is granted the lock while a renews until 30: two owners for ten minutes.
    let events = [
        event(5, EventKind::Acquired, "a", 1),
        event(20, EventKind::Acquired, "b", 2),
        event(30, EventKind::Renewed, "a", 1),
        event(31, EventKind::Renewed, "b", 2),
    ];
    let timeline = draw(&TimelineInput {
        events: &events,
        holders: Some(&[holder("b", 2, None)]),
        ..TimelineInput::default()
    });
    assert_eq!(
        drawn_blocks(&timeline),
        [
            ("b".to_owned(), 20, 60, End::Now),
            ("a".to_owned(), 5, 30, End::Unseen)
        ]
    );
    assert_eq!(timeline.overlap_ms, 10 * MINUTE);
    let both = [holder("a", 1, None), holder("b", 2, None)];
    let timeline = draw(&TimelineInput {
        events: &events,
        holders: Some(&both),
        ..TimelineInput::default()
    });
    assert_eq!(timeline.overlap_ms, 40 * MINUTE);
}

#[test]
fn short_leases_that_alternate_do_not_overlap() {
    // Each owner's leases are merged into one block, and the blocks overlap.
    let leases = (1..40_u32).flat_map(|number| {
        let owner = if number % 2 == 0 { "a" } else { "b" };
        let from = i64::from(number) * 2_000;
        [(from, EventKind::Acquired), (from + 1_000, EventKind::Released)].map(|(at, kind)| HistoryEvent {
            at,
            ..event(0, kind, owner, u64::from(number))
        })
    });
    let events: Vec<_> = leases.collect();
    let timeline = draw(&TimelineInput {
        events: &events,
        ..TimelineInput::default()
    });
    assert!(timeline.lanes.iter().all(|lane| lane.blocks[0].leases > 1));
    assert_eq!(timeline.overlap_ms, 0);
}

#[test]
fn a_forced_unlock_ends_its_lease() {
    // The scan observed a release, a moment later.
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
    let timeline = draw(&TimelineInput {
        events: &events,
        revoked: &revoked,
        holders: Some(&[]),
        ..TimelineInput::default()
    });
    let block = &timeline.lanes[0].blocks[0];
    assert_eq!(block.until, 20 * MINUTE - 400);
    assert!(matches!(&block.end, End::Revoked { by, .. } if by == "oncall"));
}

#[test]
fn an_end_in_an_outage_is_a_window_and_the_hold_an_interval() {
    // Acquired at minute 10; unobserved from 20 to 30, and gone then.
    let mut gone = event(30, EventKind::Released, "a", 1);
    gone.not_before = Some(20 * MINUTE);
    let events = [event(10, EventKind::Acquired, "a", 1), gone];
    let input = TimelineInput {
        events: &events,
        ..TimelineInput::default()
    };
    let found = blocks(&input, 60 * MINUTE);
    assert_eq!(found[0].length_range_ms(), (10 * MINUTE, 20 * MINUTE));
    let timeline = Timeline::new(&input, TimeScale::new(0, 60 * MINUTE), 60 * MINUTE);
    assert_eq!(timeline.gaps, [(20 * MINUTE, 30 * MINUTE)]);
    let holds = crate::charts::durations::Holds::from_blocks(&found);
    assert_eq!((holds.uncertain(), holds.percentile(50)), (1, Some(15 * MINUTE)));
}
