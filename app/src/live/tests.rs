use super::*;

/// Refetches of inventory, alerts and activity so far.
fn refetches(live: Live) -> [u64; 3] {
    live.epochs.map(|epoch| epoch.get_untracked())
}

fn live() -> (Owner, Live) {
    let owner = Owner::new();
    owner.set();
    let live = Live::new(CurrentSession::new(Session::open()));
    (owner, live)
}

#[test]
fn events_during_a_fetch_are_one_refetch_after_it() {
    let (_owner, live) = live();
    let fetch = live.hold_refetches();
    live.on_change(Topics::ALERTS);
    live.on_change(Topics::ALERTS);
    assert_eq!(refetches(live), [0, 0, 0]);
    drop(fetch);
    assert_eq!(refetches(live), [0, 1, 0]);
}

#[test]
fn a_page_that_closes_discards_only_its_own_events() {
    let (_owner, live) = live();
    let page = live.hold_refetches();
    live.on_change(Topics::INVENTORY);
    page.discard();
    assert_eq!(refetches(live), [0, 0, 0]);
    // The header waits for the same event.
    let (header, page) = (live.hold_refetches(), live.hold_refetches());
    live.on_change(Topics::ALERTS);
    page.discard();
    drop(header);
    assert_eq!(refetches(live), [0, 1, 0]);
}

#[test]
fn a_refused_stream_refetches_at_an_interval_to_learn_why() {
    let (_owner, live) = live();
    let refused_at = |now| {
        live.on_refused(now);
        refetches(live)
    };
    assert_eq!(refused_at(1_000), [1, 1, 1]);
    assert_eq!(refused_at(1_250), [1, 1, 1]);
    // The overload is over, and the session has ended meanwhile.
    assert_eq!(refused_at(999 + REFUSAL_CHECK_MS), [1, 1, 1]);
    assert_eq!(refused_at(1_000 + REFUSAL_CHECK_MS), [2, 2, 2]);
    // The next event opens the stream; a refusal after that has another reason.
    live.refusal_checked_at.set(None);
    assert_eq!(refused_at(1_250 + REFUSAL_CHECK_MS), [3, 3, 3]);
}

#[test]
fn data_of_a_restarted_server_is_fetched_again_once() {
    // Its stream is refused, or opens later.
    let (_owner, live) = live();
    live.seen.set_value(event(412).revisions);
    live.set_shown(412);
    assert_eq!(refetches(live), [0, 0, 0]);
    for revision in [3, 3, 4] {
        live.set_shown(revision);
        assert_eq!(refetches(live), [1, 0, 0], "revision {revision}");
    }
}

fn event(inventory: u64) -> LiveEvent {
    LiveEvent {
        revisions: Revisions {
            inventory,
            ..Revisions::default()
        },
        changes: 0,
        held_total: 0,
        attention_total: 0,
        alerts_overdue: false,
        firing_groups: 0,
        is_read_only: false,
        backends: Vec::new(),
    }
}

#[test]
fn a_restarted_server_does_not_confirm_old_data() {
    // Paused for an hour, then an event of a server whose revisions start again.
    let (_owner, live) = live();
    live.now.set(Some(3_600_000));
    live.shown.set(Some(ShownData {
        topics: Topics::INVENTORY,
        revisions: event(412).revisions,
        arrived_at: 0,
    }));
    live.last_event_at.set(3_599_800);
    for (revision, age_ms) in [(412, 200), (413, 3_600_000), (3, 3_600_000)] {
        live.last_event.set(Some(event(revision)));
        assert_eq!(live.data_age_ms(), Some(age_ms), "revision {revision}");
    }
}

#[test]
fn old_data_is_fetched_again_at_an_interval_if_that_fails_too() {
    let (_owner, live) = live();
    live.stream.set(Stream::Open);
    let show = |topics| {
        live.shown.set(Some(ShownData {
            topics,
            revisions: Revisions::default(),
            arrived_at: 0,
        }));
    };
    let renewed_at = |now| {
        event_source::refetch_old(live, now);
        refetches(live)
    };
    // No response arrives after the first.
    show(Topics::ACTIVITY);
    assert_eq!(renewed_at(5_000), [0, 0, 0]);
    assert_eq!(renewed_at(5_250), [0, 0, 1]);
    assert_eq!(renewed_at(5_500), [0, 0, 1]);
    assert_eq!(renewed_at(10_500), [0, 0, 2]);
    show(Topics::ALERTS);
    assert_eq!(renewed_at(70_500), [0, 0, 2]);
    assert_eq!(renewed_at(70_750), [0, 1, 2]);
    // Changes of the inventory have events, but the charts of an idle system end at their time.
    show(Topics::INVENTORY);
    assert_eq!(renewed_at(130_750), [0, 1, 2]);
    assert_eq!(renewed_at(130_751), [1, 1, 2]);
    assert_eq!(renewed_at(131_000), [1, 1, 2]);
}
