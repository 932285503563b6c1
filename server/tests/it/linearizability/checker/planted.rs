//! The checker on histories with one planted fault each: a checker that never finds a violation proves nothing.

use super::super::history::{
    Access, Call, Death, EventKind, HeldLease, History, HistoryRow, OperationKind, RecordedAnswer,
};
use super::{Invariant, check, lost_without_tokens};

const MS: i64 = 1_000;

fn acquire(client: u32, owner: &str, (begin, end): (i64, i64), answer: RecordedAnswer) -> Call {
    let what = OperationKind::Acquire {
        resource: "r".into(),
        owner: owner.into(),
        ttl_ms: 2_000,
    };
    call(client, (begin, end), what, answer)
}

fn call(client: u32, (begin, end): (i64, i64), what: OperationKind, answer: RecordedAnswer) -> Call {
    Call {
        client,
        begin: begin * MS,
        end: Some(end * MS),
        what,
        answer,
    }
}

fn granted(token: u64) -> RecordedAnswer {
    RecordedAnswer::Granted {
        lease: format!("l{token}"),
        token,
    }
}

fn refused(token: u64, owner: &str) -> RecordedAnswer {
    RecordedAnswer::Refused {
        token,
        owner: owner.into(),
    }
}

fn free_read() -> OperationKind {
    OperationKind::Look { resource: "r".into() }
}

fn holder(token: u64, owner: &str) -> RecordedAnswer {
    RecordedAnswer::Holder {
        last: token,
        holder: Some((token, owner.into())),
    }
}

fn held(token: u64) -> HeldLease {
    HeldLease {
        resource: "r".into(),
        lease: format!("l{token}"),
        token,
    }
}

fn row(token: u64, owner: &str, acquired_ms: i64, ended: (i64, &str)) -> HistoryRow {
    HistoryRow {
        lease: format!("l{token}"),
        resource: "r".into(),
        owner: owner.into(),
        token,
        acquired_ms,
        renewed_ms: acquired_ms,
        expires_ms: acquired_ms + 2_000,
        ended: Some((ended.0, ended.1.into())),
        ttl_ms: 2_000,
    }
}

fn access(token: u64, fenced: bool, kind: EventKind) -> Access {
    Access {
        resource: "r".into(),
        token,
        fenced,
        kind,
        accepted: true,
    }
}

/// A holds and releases, B acquires and lets it expire, C acquires; D was refused because of B; two reads and writes
/// in order.
fn good() -> History {
    let both = [true, false].into_iter().flat_map(|fenced| {
        [
            access(1, fenced, EventKind::Read),
            access(1, fenced, EventKind::Write { base: 0 }),
            access(2, fenced, EventKind::Read),
            access(2, fenced, EventKind::Write { base: 1 }),
        ]
    });
    let report = OperationKind::Report { source: "s1".into() };
    History {
        calls: vec![
            acquire(1, "a", (0, 10), granted(1)),
            call(
                1,
                (500, 510),
                OperationKind::Renew(held(1)),
                RecordedAnswer::Renewed,
            ),
            call(
                1,
                (1_000, 1_010),
                OperationKind::Release(held(1)),
                RecordedAnswer::Released,
            ),
            acquire(2, "b", (1_005, 1_020), granted(2)),
            acquire(4, "d", (1_500, 1_510), refused(2, "b")),
            acquire(3, "c", (3_100, 3_110), granted(3)),
            call(
                2,
                (3_200, 3_210),
                OperationKind::Renew(held(2)),
                RecordedAnswer::Lost,
            ),
            call(1, (3_300, 3_310), report, RecordedAnswer::Reported),
        ],
        accesses: both.collect(),
        rows: vec![
            HistoryRow {
                renewed_ms: 505,
                expires_ms: 2_505,
                ..row(1, "a", 5, (1_006, "released"))
            },
            row(2, "b", 1_010, (3_010, "expired")),
            row(3, "c", 3_105, (5_105, "expired")),
        ],
        ledger: vec!["s1".into()],
        deaths: Vec::new(),
        lifetime_ms_max: 86_400_000,
        margin_ms: 0,
        clock_moved: false,
    }
}

fn finds(history: &History, invariant: Invariant) {
    let found = check(history);
    assert!(
        found.iter().any(|violation| violation.invariant == invariant),
        "{invariant:?} not found: {found:#?}"
    );
}

#[test]
fn a_sound_history_passes() {
    // With a lost answer too: an unknown outcome is no violation.
    assert_eq!(check(&good()), []);
    let mut history = good();
    history.calls[3].answer = RecordedAnswer::Unknown;
    history.calls[3].end = None;
    assert_eq!(check(&history), []);
}

#[test]
fn i1_a_token_granted_twice_or_after_a_higher_one_is_found() {
    // C gets B's token; and C gets a token below those before.
    let mut history = good();
    history.calls[5].answer = granted(2);
    finds(&history, Invariant::I1);
    let mut history = good();
    history.rows.truncate(2);
    history.calls[0].answer = granted(9);
    finds(&history, Invariant::I1);
    let mut history = good();
    history.rows[2].acquired_ms = 1_008;
    finds(&history, Invariant::I1);
}

#[test]
fn i2_a_grant_before_the_end_of_the_one_before_is_found() {
    // B is in the store before A's release; and B has no ending although C came after it.
    let mut history = good();
    history.rows[0].ended = Some((1_100, "released".into()));
    finds(&history, Invariant::I2);
    let mut history = good();
    history.rows[1].ended = None;
    finds(&history, Invariant::I2);
}

#[test]
fn i3_answers_that_fit_no_order_are_found() {
    // C granted while B's TTL still runs; D refused by A after A's release was answered; B renewed after C's grant; a
    // free look while B holds; a release answered for a lease that had lost its place.
    let mut history = good();
    (history.calls[5].begin, history.calls[5].end) = (2_000 * MS, Some(2_010 * MS));
    finds(&history, Invariant::I3);
    let mut history = good();
    history.calls[4].answer = refused(1, "a");
    finds(&history, Invariant::I3);
    let mut history = good();
    history.calls[6].answer = RecordedAnswer::Renewed;
    finds(&history, Invariant::I3);
    let mut history = good();
    let free = RecordedAnswer::Holder {
        last: 2,
        holder: None,
    };
    history.calls.push(call(9, (1_600, 1_610), free_read(), free));
    finds(&history, Invariant::I3);
    let mut history = good();
    history.calls.push(call(
        2,
        (3_300, 3_310),
        OperationKind::Release(held(2)),
        RecordedAnswer::Released,
    ));
    finds(&history, Invariant::I3);
    let mut history = good();
    history.calls[4].answer = RecordedAnswer::Unexpected("404".into());
    finds(&history, Invariant::I3);
}

#[test]
fn i3_a_lease_at_its_cap_may_end_before_its_ttl() {
    // B is renewed at 2 s and ends at 3 s after its grant, at the cap; without one that is too early for C.
    let mut history = good();
    history.calls.push(call(
        2,
        (2_000, 2_010),
        OperationKind::Renew(held(2)),
        RecordedAnswer::Renewed,
    ));
    finds(&history, Invariant::I3);
    history.lifetime_ms_max = 2_000;
    assert_eq!(check(&history), []);
}

#[test]
fn i3_a_refused_client_held_it_at_most_until_the_response() {
    // E is granted at the end of its wait: released before the refusal, or not.
    let mut history = good();
    history
        .calls
        .push(acquire(5, "e", (5_200, 6_100), refused(3, "c")));
    history.rows.push(row(4, "e", 6_000, (6_001, "released")));
    history.calls[8].begin = 4_000 * MS;
    assert_eq!(check(&history), []);
    history
        .calls
        .push(call(9, (6_200, 6_210), free_read(), holder(4, "e")));
    finds(&history, Invariant::I3);
}

#[test]
fn i3_a_moved_clock_excuses_only_an_early_end() {
    // B's lease ends early by the store's clock; an answer out of order is still found.
    let mut history = good();
    history.clock_moved = true;
    (history.calls[5].begin, history.calls[5].end) = (2_000 * MS, Some(2_010 * MS));
    assert_eq!(check(&history), []);
    history.calls[4].answer = refused(1, "a");
    finds(&history, Invariant::I3);
}

#[test]
fn i4_a_lost_update_is_found_with_fencing_and_counted_without() {
    // B writes from the version that A read, after A wrote; an older token is accepted after a newer one.
    let mut history = good();
    history.accesses[3].kind = EventKind::Write { base: 0 };
    finds(&history, Invariant::I4);
    let mut history = good();
    history.accesses.swap(1, 2);
    finds(&history, Invariant::I4);
    let mut history = good();
    history.accesses[7].kind = EventKind::Write { base: 0 };
    assert_eq!(check(&history), []);
    assert_eq!(lost_without_tokens(&history), 1);
    assert_eq!(lost_without_tokens(&good()), 0);
}

#[test]
fn i5_locks_of_dead_clients_and_leases_past_the_cap_are_found() {
    // B's client died at 1.1 s and is still named as the holder at 4.2 s; a lease lived longer than its TTL or the cap.
    let mut history = good();
    history.deaths.push(Death {
        client: 2,
        at: 1_100 * MS,
        bound_ms: 3_000,
    });
    assert_eq!(check(&history), []);
    history
        .calls
        .push(call(9, (4_200, 4_210), free_read(), holder(2, "b")));
    finds(&history, Invariant::I5);
    let mut history = good();
    history.lifetime_ms_max = 1_500;
    finds(&history, Invariant::I5);
    let mut history = good();
    history.rows[2].ended = Some((5_200, "released".into()));
    finds(&history, Invariant::I5);
    history.margin_ms = 95;
    assert_eq!(check(&history), []);
    history.margin_ms = 94;
    finds(&history, Invariant::I5);
}

#[test]
fn i7_a_response_for_a_lease_reported_ended_is_found() {
    // Each begins after B's end was reported at 3.21 s: a refusal, a look, a reading, a renewal; a moved clock is no excuse.
    let lookup = |answer| call(9, (3_220, 3_230), free_read(), answer);
    let ended = call(
        2,
        (3_012, 3_020),
        OperationKind::Read(held(2)),
        RecordedAnswer::Lost,
    );
    let late = [
        acquire(9, "z", (3_220, 3_230), refused(2, "b")),
        lookup(holder(2, "b")),
        call(
            2,
            (3_220, 3_230),
            OperationKind::Read(held(2)),
            RecordedAnswer::Alive,
        ),
        call(
            2,
            (3_220, 3_230),
            OperationKind::Renew(held(2)),
            RecordedAnswer::Renewed,
        ),
    ];
    for answer in late {
        let mut history = good();
        history.clock_moved = true;
        history.calls.push(ended.clone());
        assert_eq!(check(&history), []);
        history.calls.push(answer);
        finds(&history, Invariant::I7);
    }
    // Reported by a read of a free resource, by a higher token's grant, and by a release.
    let reports = [
        lookup(RecordedAnswer::Holder {
            last: 2,
            holder: None,
        }),
        acquire(3, "c", (3_100, 3_110), granted(3)),
        call(
            2,
            (3_000, 3_010),
            OperationKind::Release(held(2)),
            RecordedAnswer::Released,
        ),
    ];
    for report in reports {
        let mut history = good();
        history.calls.truncate(5);
        history.calls.push(report);
        history
            .calls
            .push(acquire(9, "z", (3_240, 3_250), refused(2, "b")));
        finds(&history, Invariant::I7);
    }
    // Begun before the report, or refused for waiters: sound.
    let mut history = good();
    history.calls.push(ended);
    history
        .calls
        .push(acquire(9, "y", (3_005, 3_250), refused(2, "b")));
    history.calls.push(acquire(
        9,
        "z",
        (3_050, 3_060),
        RecordedAnswer::RefusedForWaiters(1),
    ));
    assert_eq!(check(&history), []);
}

#[test]
fn i6_missing_or_repeated_rejections_are_found() {
    // An answered grant missing in the store; a stored one not requested; a rejection missing, doubled, or invented.
    let mut history = good();
    history.rows.remove(0);
    finds(&history, Invariant::I6);
    let mut history = good();
    history.rows.push(row(4, "ghost", 6_000, (8_000, "expired")));
    finds(&history, Invariant::I6);
    let mut history = good();
    history.rows.push(HistoryRow {
        ended: None,
        ..row(4, "d", 6_000, (0, ""))
    });
    finds(&history, Invariant::I6);
    let mut history = good();
    history.rows.push(row(4, "d", 6_000, (8_000, "expired")));
    finds(&history, Invariant::I3);
    for ledger in [vec![], vec!["s1", "s1"], vec!["s1", "s2"]] {
        let mut history = good();
        history.ledger = ledger.into_iter().map(str::to_owned).collect();
        finds(&history, Invariant::I6);
    }
}
