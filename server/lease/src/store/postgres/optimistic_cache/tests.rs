use domain::lease::{Acquire, Command, LeaseId, Metadata, Ttl, transition};
use domain::names::OwnerId;

use super::*;

/// Acquired at 0, TTL 30 s.
fn held_state() -> ResourceState {
    let acquire = Acquire {
        id: LeaseId::from_parts(0, [1; 10]),
        owner: OwnerId::new("o"),
        issuer: "t".into(),
        ttl: Ttl::parse(30, 3_600).unwrap(),
        metadata: Metadata::default(),
        floor: 0,
        margin_ms: 0,
    };
    let command = Command::Acquire(acquire);
    transition(&ResourceState::default(), &command, StoreTime::from_ms(0))
        .unwrap()
        .after
}

#[test]
fn lease_near_expiry_is_not_answered_from_cache() {
    let clear = |ms| is_clear(&held_state(), StoreTime::from_ms(ms));
    assert!(clear(0) && clear(29_499));
    assert!(!clear(29_500) && !clear(30_000) && !clear(99_000));
}

#[test]
fn lock_delay_near_its_end_is_not_answered_from_cache() {
    let state = ResourceState {
        locked_until: Some(StoreTime::from_ms(10_000)),
        ..ResourceState::default()
    };
    let clear = |ms| is_clear(&state, StoreTime::from_ms(ms));
    assert!(clear(0) && clear(9_499) && clear(10_501));
    assert!(!clear(9_500) && !clear(10_000) && !clear(10_500));
}

#[test]
fn unused_resource_is_answered_from_cache() {
    assert!(is_clear(&ResourceState::default(), StoreTime::from_ms(0)));
}
