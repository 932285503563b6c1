//! Readings near the expiry of a lease.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::test_lease::granted_lease;

#[test]
fn a_listed_lease_is_held_until_its_expiry_is_stored() {
    // Read 10 ms before its expiry, and answered 40 ms after it: it may have been renewed since.
    let at = StoreTime::from_ms;
    let lease = granted_lease(at(1_000));
    let view = |now_ms| lease_view(Resource::from("r"), lease.clone(), at(now_ms), 50);
    let seen = [30_900, 30_990, 31_000].map(|now_ms| {
        let view = view(now_ms);
        (view.state(), view.remaining_ms)
    });
    assert_eq!(seen, [("held", 50), ("held", 0), ("expired", 0)]);
}

#[tokio::test]
async fn a_reading_is_repeated_until_it_decides() {
    let readings = AtomicU64::new(0);
    let undecided_for = |most: u64| {
        let count = readings.fetch_add(1, Ordering::Relaxed) + 1;
        std::future::ready(Ok((count > most).then_some(count)))
    };
    // Readings are limited by time, not by number.
    assert_eq!(read_until_decided(|| undecided_for(20)).await, Ok(21));
    assert_eq!(
        read_until_decided(|| undecided_for(u64::MAX)).await,
        Err(LeaseError::Unavailable)
    );
}
