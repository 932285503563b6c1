//! Shared locks: leases that overlap.

use super::*;

fn shared_by(who: &str) -> Holder {
    Holder {
        owner: owner(who),
        token: None,
        since: None,
    }
}

#[test]
fn owners_of_a_shared_lock_overlap_without_a_conflict() {
    // a shares it with b and leaves; then both hold it now, with and without recorded grants.
    let events = [
        event(5, EventKind::Acquired, "a", 0),
        event(10, EventKind::ShareAcquired, "b", 0),
        event(20, EventKind::ShareReleased, "a", 0),
        event(30, EventKind::Released, "b", 0),
    ];
    let timeline = draw(&TimelineInput {
        events: &events,
        holders: Some(&[]),
        ..TimelineInput::default()
    });
    assert_eq!(
        drawn_blocks(&timeline),
        [
            ("b".to_owned(), 10, 30, End::Released),
            ("a".to_owned(), 5, 20, End::Released)
        ]
    );
    assert_eq!(timeline.overlap_ms, 0);
    let holders = [shared_by("a"), shared_by("b")];
    for events in [&events[..2], &[]] {
        let timeline = draw(&TimelineInput {
            events,
            holders: Some(&holders),
            is_shared: true,
            ..TimelineInput::default()
        });
        assert!(timeline.lanes.iter().all(Lane::holds_now));
        assert_eq!((timeline.lanes.len(), timeline.overlap_ms), (2, 0));
    }
}

#[test]
fn each_of_many_sharers_has_one_lease() {
    // Forty owners join, a minute apart, and leave in the same order.
    let name = |number: i64| format!("w{number}");
    let joined = (0..40).map(|number| {
        let kind = if number == 0 {
            EventKind::Acquired
        } else {
            EventKind::ShareAcquired
        };
        event(number, kind, &name(number), 0)
    });
    let left = (0..40).map(|number| event(100 + number, EventKind::ShareReleased, &name(number), 0));
    let events: Vec<_> = joined.chain(left).collect();
    let input = TimelineInput {
        events: &events,
        ..TimelineInput::default()
    };
    let found = blocks(&input, 200 * MINUTE);
    assert_eq!(found.len(), 40);
    assert!(found.iter().all(|block| block.length_ms() == 100 * MINUTE));
}

#[test]
fn a_lease_whose_end_was_not_observed_is_no_hold_time() {
    // Its end was not recorded; the next grant came hours later, or minutes.
    let events = [
        event(5, EventKind::Acquired, "a", 1),
        event(50, EventKind::Acquired, "b", 2),
        event(52, EventKind::Released, "b", 2),
    ];
    let found = blocks(
        &TimelineInput {
            events: &events,
            ..TimelineInput::default()
        },
        60 * MINUTE,
    );
    assert_eq!(found[0].end, End::Displaced);
    let holds = crate::charts::durations::Holds::from_blocks(&found);
    assert_eq!((holds.count(), holds.percentile(50)), (1, Some(2 * MINUTE)));
}
