//! A queue has a length, and the rejections that are read at once have a number: one client cannot make reads grow without end.

use ::lease::RejectionRange;
use ::lease::operation::{AcquireMode, AcquireOp, Operation, OperationResult};
use ::lease::store::Lane;
use domain::lease::limits::{BATCH_OPERATIONS_MAX, QUEUE_MAX};
use domain::lease::{LeaseId, Metadata, StoreTime, Ttl};
use domain::names::{OwnerId, Resource};
use runtime::clock::Clock;

use super::lease_server::{LeaseStore, StoreKind, on_both_stores};

fn acquire(number: usize) -> Operation {
    let mut bytes = [0; 10];
    bytes[..8].copy_from_slice(&u64::try_from(number).unwrap().to_be_bytes());
    Operation::Acquire(Box::new(AcquireOp {
        resource: Resource::from("r"),
        id: LeaseId::from_parts(1_700_000_000_000, bytes),
        owner: OwnerId::new("o"),
        issuer: "t".into(),
        ttl: Ttl::parse(600, 3_600).unwrap(),
        metadata: Metadata::default(),
        key: None,
        mode: AcquireMode::OrWait,
    }))
}

on_both_stores!(a_full_queue_refuses_at_once, |lease_store| {
    let store = lease_store.open(&Clock::start()).await;
    store.send_heartbeat().await.unwrap();
    // The holder and a full queue.
    let requests: Vec<Operation> = (0..=QUEUE_MAX).map(acquire).collect();
    for batch in requests.chunks(BATCH_OPERATIONS_MAX) {
        store.send_heartbeat().await.unwrap();
        let applied = store.apply(Lane::Main, batch).await.unwrap();
        let refused = applied
            .done
            .iter()
            .filter(|done| matches!(done, OperationResult::Refused { .. }));
        assert_eq!(refused.count(), 0);
    }
    store.send_heartbeat().await.unwrap();
    let again = [acquire(QUEUE_MAX + 1), acquire(1)];
    let done = store.apply(Lane::Main, &again).await.unwrap().done;
    let full = u32::try_from(QUEUE_MAX).unwrap();
    assert!(
        matches!(done[0], OperationResult::Refused { waiters, .. } if waiters == full),
        "{done:?}"
    );
    assert!(
        matches!(done[1], OperationResult::Queued { ahead: 0, .. }),
        "{done:?}"
    );
    store.close().await;
});

#[tokio::test]
async fn a_flood_of_rejections_is_read_in_part() {
    // Each of another owner, as one client can report them; the newest are read.
    const ROWS: i64 = 50_010;
    let lease_store = LeaseStore::new(StoreKind::Sqlite).await;
    let store = lease_store.open(&Clock::start()).await;
    lease_store
        .sql(&format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})
             INSERT INTO fencing_rejections (id, resource, fencing_token, highest_token, owner_id, source, reason, at, recorded_at)
             SELECT i, 'r', 1, 2, 'owner' || i, 'x', 'stale', i, i FROM n"
        ))
        .await;
    let range = RejectionRange {
        after: 0,
        to: i64::MAX,
        since: StoreTime::from_ms(0),
    };
    let counts = store.rejection_counts(&range).await.unwrap();
    assert_eq!(counts.len(), 50_000);
    assert_eq!(counts.last().map(|count| count.at.ms()), Some(ROWS));
    assert!(counts.is_sorted_by_key(|count| count.at));
    store.close().await;
}
