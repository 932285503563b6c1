//! Property tests of the state machine.

use std::collections::HashMap;

use proptest::prelude::*;

use super::scope::NameRange;
use super::*;
use crate::lease::fencing::{FencingDecision, check};
use crate::names::OwnerId;
use crate::token::FencingToken;

mod parsers;

const LIFETIME_MS: i64 = 60_000;

#[derive(Debug, Clone)]
enum Act {
    Acquire {
        owner: u8,
        ttl: i64,
    },
    Renew {
        lease: usize,
        ttl: Option<i64>,
    },
    Release {
        lease: usize,
    },
    Revoke {
        lease: usize,
        delay_ms: i64,
    },
    Expire,
    /// Moves the store's clock, also backwards.
    Jump {
        ms: i64,
    },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => (0..4_u8, 1..20_i64).prop_map(|(owner, ttl)| Act::Acquire { owner, ttl }),
        3 => (0..8_usize, proptest::option::of(1..20_i64)).prop_map(|(lease, ttl)| Act::Renew { lease, ttl }),
        2 => (0..8_usize).prop_map(|lease| Act::Release { lease }),
        1 => (0..8_usize, 0..5_000_i64).prop_map(|(lease, delay_ms)| Act::Revoke { lease, delay_ms }),
        1 => Just(Act::Expire),
        4 => (0..12_000_i64).prop_map(|ms| Act::Jump { ms }),
        1 => (-3_600_000..3_600_000_i64).prop_map(|ms| Act::Jump { ms }),
    ];
    proptest::collection::vec(act, 1..=60)
}

fn ttl(seconds: i64) -> Ttl {
    Ttl::parse(seconds, 3_600).unwrap()
}

fn id(number: usize) -> LeaseId {
    LeaseId::from_parts(i64::try_from(number).unwrap(), [7; 10])
}

fn request(number: usize, owner: u8, seconds: i64) -> Acquire {
    Acquire {
        id: id(number),
        owner: OwnerId::new(format!("worker-{owner}")),
        issuer: "".into(),
        ttl: ttl(seconds),
        metadata: Metadata::default(),
        floor: 0,
        margin_ms: 0,
    }
}

fn command(act: &Act, granted: &[LeaseId], step: usize) -> Option<Command> {
    let pick = |back: usize| granted.iter().rev().nth(back).copied();
    Some(match act {
        Act::Acquire { owner, ttl } => Command::Acquire(request(step, *owner, *ttl)),
        Act::Renew { lease, ttl: seconds } => Command::Renew(Renew {
            lease: pick(*lease)?,
            ttl: seconds.map(ttl),
            lifetime_ms_max: LIFETIME_MS,
        }),
        Act::Release { lease } => Command::Release { lease: pick(*lease)? },
        Act::Revoke { lease, delay_ms } => Command::Revoke(Revoke {
            lease: pick(*lease)?,
            revocation: Revocation {
                by: "op".into(),
                reason: "stuck".into(),
                audit_id: "a1".into(),
            },
            delay_ms: *delay_ms,
        }),
        Act::Expire => Command::Expire,
        Act::Jump { .. } => return None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4 * ProptestConfig::default().cases))]

    #[test]
    fn tokens_rise_and_one_lease_lives_whatever_happens(acts in acts(), margin_ms in prop_oneof![Just(0), 0..3_000_i64]) {
        // Random commands and clock jumps, compared with a model of grants and ends, with one clock and with several.
        let mut state = ResourceState::default();
        let mut now = StoreTime::from_ms(10_000_000);
        let mut granted: Vec<LeaseId> = Vec::new();
        let mut ended: HashMap<LeaseId, &'static str> = HashMap::new();
        let mut last = 0;
        for (number, act) in acts.iter().enumerate() {
            if let Act::Jump { ms } = act {
                now = now.plus(*ms);
            }
            let Some(mut command) = command(act, &granted, number) else { continue };
            if let Command::Acquire(request) = &mut command {
                request.margin_ms = margin_ms;
            }
            let seen = now.max(state.touched_at);
            let step = transition(&state, &command, now).unwrap();
            match &step.outcome {
                TransitionOutcome::Granted { lease, .. } => {
                    prop_assert!(lease.token.number() == last + 1);
                    last = lease.token.number();
                    if let Some(before) = granted.last() {
                        // The previous holder's lease has ended, by itself or by time.
                        let old = step.displaced.as_ref().unwrap();
                        prop_assert_eq!(old.id, *before);
                        prop_assert!(old.ending.is_some());
                        ended.insert(*before, "displaced");
                    }
                    granted.push(lease.id);
                }
                TransitionOutcome::Renewed(lease) => {
                    prop_assert!(!ended.contains_key(&lease.id), "a lease that had ended was renewed");
                    prop_assert!(lease.expires_at.since(lease.acquired_at) <= LIFETIME_MS);
                    prop_assert!(lease.expires_at > seen);
                    prop_assert_eq!(lease.token.number(), last);
                }
                TransitionOutcome::Expired(lease) => {
                    prop_assert!(lease.expires_at.plus(margin_ms) <= seen, "a note of expiry ended a lease that lived");
                    prop_assert!(ended.insert(lease.id, "expired").is_none(), "a lease ended twice");
                }
                TransitionOutcome::Released(lease) | TransitionOutcome::Revoked(lease) => {
                    prop_assert!(ended.insert(lease.id, "ended").is_none(), "a lease ended twice");
                }
                TransitionOutcome::Lost(lease, _) => { ended.insert(lease.id, "lost"); }
                TransitionOutcome::Refused(refusal) => {
                    prop_assert!(refusal.retry_after_ms > 0, "refused without a reason");
                }
                TransitionOutcome::LifetimeReached(_) | TransitionOutcome::NotThisLease | TransitionOutcome::Unchanged => {
                    prop_assert_eq!(&step.after, &state);
                }
            }
            state = step.after;
            if let Some(lease) = &state.lease {
                prop_assert_eq!(lease.lives_at(seen), !ended.contains_key(&lease.id) && lease.expires_at.plus(margin_ms) > seen);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn a_scope_as_ranges_covers_the_same_names(
        prefixes in proptest::collection::vec("[ab:/]{0,3}", 0..4), prefix in "[ab:]{0,2}", name in "[ab:/_]{1,5}",
    ) {
        // The store filters by ranges, the API by `covers`: they must agree on every name.
        let scope = Scope::prefixes(prefixes);
        let within = |range: &NameRange| *name >= *range.from && range.to.as_ref().is_none_or(|to| name < *to);
        let ranges = scope.ranges(&prefix);
        prop_assert_eq!(ranges.iter().filter(|range| within(range)).count(),
            usize::from(scope.covers(&name) && name.starts_with(&prefix)));
    }

    #[test]
    fn lease_ids_survive_a_round_trip(ms in 0..1_i64 << 47, random: [u8; 10]) {
        // Version and variant bits are set, and the text form is unique.
        let id = LeaseId::from_parts(ms, random);
        let text = id.to_string();
        prop_assert_eq!(LeaseId::parse(&text), Some(id));
        prop_assert_eq!(&text[14..15], "7");
        prop_assert!("89ab".contains(&text[19..20]));
        prop_assert_eq!(i64::from_str_radix(&text.replace('-', "")[..12], 16).unwrap(), ms);
    }
}

#[test]
fn a_clock_set_back_leaves_no_more_than_the_ttl() {
    // Granted with the clock an hour before the last change: 10 s are left, not an hour and 10
    // s.
    let now = StoreTime::from_ms(10_000_000);
    let acquire = |number, state: &ResourceState, now| {
        let step = transition(state, &Command::Acquire(request(number, 0, 10)), now).unwrap();
        let TransitionOutcome::Granted { lease, .. } = step.outcome else {
            panic!("{:?}", step.outcome)
        };
        (lease, step.after)
    };
    let (first, state) = acquire(1, &ResourceState::default(), now);
    let released = transition(&state, &Command::Release { lease: first.id }, now).unwrap();
    let back = now.plus(-3_600_000);
    let (second, state) = acquire(2, &released.after, back);
    assert_eq!(second.remaining_ms(back), 10_000);
    assert_eq!(transition::refusal(&state, back).remaining_ms, 10_000);
}

#[test]
fn acquire_by_the_holder_itself_is_refused_and_names_it() {
    // Not re-entrant: `heldBy` names the requesting owner itself.
    let now = StoreTime::from_ms(1_000);
    let first = transition(
        &ResourceState::default(),
        &Command::Acquire(request(1, 0, 10)),
        now,
    )
    .unwrap();
    let again = transition(&first.after, &Command::Acquire(request(2, 0, 10)), now.plus(1)).unwrap();
    let TransitionOutcome::Refused(refusal) = again.outcome else {
        panic!("{:?}", again.outcome)
    };
    assert_eq!(refusal.owner, Some(OwnerId::new("worker-0")));
    assert_eq!(refusal.remaining_ms, 9_999);
}

#[test]
fn a_delay_after_a_revocation_blocks_every_acquire() {
    // The refusal reports the delay; after it the next acquire gets the next token.
    let now = StoreTime::from_ms(1_000);
    let held = transition(
        &ResourceState::default(),
        &Command::Acquire(request(1, 0, 10)),
        now,
    )
    .unwrap();
    let revoke = Command::Revoke(Revoke {
        lease: id(1),
        revocation: Revocation {
            by: "op".into(),
            reason: "stuck".into(),
            audit_id: "a".into(),
        },
        delay_ms: 500,
    });
    let revoked = transition(&held.after, &revoke, now.plus(10)).unwrap();
    let early = transition(
        &revoked.after,
        &Command::Acquire(request(2, 1, 10)),
        now.plus(509),
    )
    .unwrap();
    let TransitionOutcome::Refused(refusal) = early.outcome else {
        panic!("{:?}", early.outcome)
    };
    assert_eq!((refusal.remaining_ms, refusal.retry_after_ms), (0, 1));
    let later = transition(
        &revoked.after,
        &Command::Acquire(request(2, 1, 10)),
        now.plus(510),
    )
    .unwrap();
    assert_eq!(later.after.last_token, FencingToken::new(2));
}

#[test]
fn an_epoch_floor_raises_the_next_token() {
    // After a restore, no token is issued again that a lost part of the store may have issued.
    let now = StoreTime::from_ms(0);
    let raised = Acquire {
        floor: 1 << 32,
        ..request(1, 0, 10)
    };
    let step = transition(&ResourceState::default(), &Command::Acquire(raised), now).unwrap();
    assert_eq!(step.after.last_token.number(), (1 << 32) + 1);
}

#[test]
fn the_last_token_below_two_to_the_53_is_never_passed() {
    // JavaScript rounds above this: no grant rather than a number that two owners share.
    let state = ResourceState {
        last_token: FencingToken::new(limits::TOKEN_MAX),
        ..ResourceState::default()
    };
    assert!(
        transition(
            &state,
            &Command::Acquire(request(1, 0, 10)),
            StoreTime::from_ms(0)
        )
        .is_err()
    );
}

#[test]
fn a_renewal_is_shortened_at_the_lifetime_cap() {
    // Cap 60 s: at 55 s only 5 s can be added; at 58 s nothing, and the lease runs until its
    // end.
    let start = StoreTime::from_ms(0);
    let mut state = transition(
        &ResourceState::default(),
        &Command::Acquire(request(1, 0, 50)),
        start,
    )
    .unwrap()
    .after;
    let renew = Command::Renew(Renew {
        lease: id(1),
        ttl: None,
        lifetime_ms_max: LIFETIME_MS,
    });
    let cut = transition(&state, &renew, start.plus(49_000)).unwrap();
    let TransitionOutcome::Renewed(lease) = cut.outcome else {
        panic!("{:?}", cut.outcome)
    };
    assert_eq!(lease.expires_at, start.plus(LIFETIME_MS));
    state = cut.after;
    let none = transition(&state, &renew, start.plus(58_000)).unwrap();
    assert!(matches!(none.outcome, TransitionOutcome::LifetimeReached(_)));
    assert!(none.after.holder_at(start.plus(59_999)).is_some());
}

#[test]
fn a_check_accepts_the_last_token_only() {
    // Lower is stale; higher and never granted are never issued; the lease's state is reported
    // too.
    let now = StoreTime::from_ms(0);
    let free = ResourceState::default();
    assert_eq!(
        check(&free, FencingToken::new(0), now).verdict,
        FencingDecision::NeverIssued
    );
    assert_eq!(check(&free, FencingToken::new(1), now).lease_state, "none");
    let raised = Acquire {
        floor: 5,
        ..request(1, 0, 10)
    };
    let held = transition(&free, &Command::Acquire(raised), now).unwrap().after;
    let verdict = |token| check(&held, FencingToken::new(token), now).verdict;
    assert_eq!(
        (verdict(5), verdict(6), verdict(7)),
        (
            FencingDecision::Stale,
            FencingDecision::Accepted,
            FencingDecision::NeverIssued
        )
    );
    assert_eq!(
        check(&held, FencingToken::new(6), now.plus(10_000)).lease_state,
        "expired"
    );
}

#[test]
fn a_lease_is_held_for_the_margin_after_its_expiry() {
    // By a clock that may be ahead: its owner may still renew it, no one else is granted it, and its expiry is not recorded.
    let at = StoreTime::from_ms;
    let acquire = |number, owner| {
        Command::Acquire(Acquire {
            margin_ms: 500,
            ..request(number, owner, 10)
        })
    };
    let held = transition(&ResourceState::default(), &acquire(1, 0), at(0))
        .unwrap()
        .after;
    let outcome = |command: &Command, ms| transition(&held, command, at(ms)).unwrap().outcome;
    let TransitionOutcome::Refused(refusal) = outcome(&acquire(2, 1), 10_100) else {
        panic!("granted within the margin")
    };
    assert_eq!(refusal.owner, Some(OwnerId::new("worker-0")));
    assert_eq!((refusal.remaining_ms, refusal.retry_after_ms), (0, 400));
    assert_eq!(outcome(&Command::Expire, 10_499), TransitionOutcome::Unchanged);
    let renew = Command::Renew(Renew {
        lease: id(1),
        ttl: None,
        lifetime_ms_max: LIFETIME_MS,
    });
    assert!(
        matches!(outcome(&renew, 10_499), TransitionOutcome::Renewed(lease) if lease.expires_at == at(20_499))
    );
    assert!(matches!(outcome(&renew, 10_500), TransitionOutcome::Lost(..)));
    assert!(matches!(
        outcome(&Command::Expire, 10_500),
        TransitionOutcome::Expired(_)
    ));
    assert!(matches!(
        outcome(&acquire(2, 1), 10_500),
        TransitionOutcome::Granted { reclaimed: true, .. }
    ));
}
