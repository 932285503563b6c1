//! The store's time over several replicas.

use super::*;

const HOUR: Duration = Duration::from_secs(3_600);

/// Opens another replica while `ours` writes its time, as the maintenance task does.
async fn join(ours: &EtcdStore, config: &LeaseStoreConfig, clock: Clock) -> EtcdStore {
    let writing = async {
        loop {
            ours.run_maintenance(&RETENTION).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        opened = EtcdStore::open(config, clock) => opened.unwrap(),
        () = writing => unreachable!(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_with_a_wrong_wall_clock_adopts_the_store_time() {
    let etcd = cluster(1, &[]).await;
    let ours = open(&etcd).await;
    let held = granted(&ours, "r").await;
    // Another replica starts an hour ahead.
    let clock = Clock::start();
    clock.advance(HOUR);
    let other = join(&ours, &config(&etcd.addresses()), clock).await;
    let difference = other.store_clock.read().now.since(ours.store_clock.read().now);
    assert!(difference.abs() < 60_000, "{difference} ms");
    let refused = try_acquire(&other, "r").await.unwrap();
    assert!(matches!(refused, OperationResult::Refused { .. }), "{refused:?}");
    let released = apply(&other, release(held.id)).await.unwrap();
    assert!(matches!(released, OperationResult::Released(_)), "{released:?}");
    for store in [ours, other] {
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_without_replicas_continues_its_time() {
    // All replicas stopped with a clock an hour ahead; the next one has the true time.
    let etcd = cluster(1, &[]).await;
    let ahead = Clock::start();
    ahead.advance(HOUR);
    let first = open_with(&etcd, ahead.clone()).await;
    // The time of this grant is nowhere but in its resource.
    ahead.advance(Duration::from_secs(10));
    let held = granted(&first, "r").await;
    first.close().await;
    let second = open(&etcd).await;
    let read = second.resource(&Resource::from("r")).await.unwrap();
    assert!(read.now >= held.acquired_at, "{read:?}");
    let left_ms = held.remaining_ms(read.now);
    assert!((1..=TTL_SECONDS * 1_000).contains(&left_ms), "{left_ms}");
    second.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_after_a_step_of_the_wall_clock_ends_no_lease() {
    // The last server's wall clock is an hour ahead of the store's time, as after a step or a suspension; so is that of the next.
    let etcd = cluster(1, &[]).await;
    let first = open(&etcd).await;
    let ahead = Clock::start();
    ahead.advance(HOUR);
    let last = join(&first, &config(&etcd.addresses()), ahead.clone()).await;
    first.close().await;
    let held = granted(&last, "r").await;
    last.run_maintenance(&RETENTION).await.unwrap();
    last.close().await;
    let next = open_with(&etcd, ahead).await;
    let read = next.resource(&Resource::from("r")).await.unwrap();
    assert!(read.now >= held.acquired_at, "{read:?}");
    assert!(held.remaining_ms(read.now) > 0, "{read:?}");
    let renewed = apply(&next, renew(held.id)).await.unwrap();
    assert!(matches!(renewed, OperationResult::Renewed(_)), "{renewed:?}");
    next.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_lock_of_a_dead_owner_is_free_after_the_margin() {
    let etcd = cluster(1, &[]).await;
    let clock = Clock::start();
    let store = open_with(&etcd, clock.clone()).await;
    let first = granted(&store, "r").await;
    clock.advance(Duration::from_millis(u64::try_from(TTL_SECONDS).unwrap() * 1_000));
    let refused = try_acquire(&store, "r").await.unwrap();
    let OperationResult::Refused { refusal, .. } = refused else {
        panic!("{refused:?}");
    };
    assert!(
        (1..=500).contains(&refusal.retry_after_ms) && refusal.remaining_ms == 0,
        "{refusal:?}"
    );
    clock.advance(Duration::from_millis(500));
    let second = granted(&store, "r").await;
    assert_eq!(second.token.number(), first.token.number() + 1);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_is_ahead_reports_no_early_expiry() {
    // By less than the margin: what the other one granted has expired by its clock.
    let etcd = cluster(1, &[]).await;
    let config = LeaseStoreConfig {
        max_clock_skew: Duration::from_secs(10),
        ..config(&etcd.addresses())
    };
    let (clock, clock_ahead) = (Clock::start(), Clock::start());
    let store = EtcdStore::open(&config, clock.clone()).await.unwrap();
    let ahead = join(&store, &config, clock_ahead.clone()).await;
    let held = granted(&store, "r").await;
    let ttl = Duration::from_secs(TTL_SECONDS.unsigned_abs());
    clock.advance(ttl - Duration::from_secs(5));
    clock_ahead.advance(ttl + Duration::from_secs(5));
    let is_expired = [&store, &ahead].map(|it| it.store_clock.read().now >= held.expires_at);
    assert_eq!(is_expired, [false, true]);
    let expired = ahead.expired_leases(10).await.unwrap().value;
    assert!(expired.is_empty(), "{expired:?}");
    let refused = try_acquire(&ahead, "r").await.unwrap();
    assert!(
        matches!(&refused, OperationResult::Refused { refusal, .. } if refusal.owner.is_some()),
        "{refused:?}"
    );
    let renewed = apply(&ahead, renew(held.id)).await.unwrap();
    assert!(matches!(renewed, OperationResult::Renewed(_)), "{renewed:?}");
    for store in [store, ahead] {
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_after_a_pause_has_the_time_of_the_others() {
    // A process whose clock stood still meanwhile, as with its machine: by the time of the others its grant has expired.
    let etcd = cluster(1, &[]).await;
    let (ours, clock_other) = (open(&etcd).await, Clock::start());
    let other = join(&ours, &config(&etcd.addresses()), clock_other.clone()).await;
    clock_other.advance(Duration::from_secs(TTL_SECONDS.unsigned_abs() * 2));
    other.run_maintenance(&RETENTION).await.unwrap();
    let op = Operation::Acquire(Box::new(acquire("r", AcquireMode::Once)));
    let applied = ours.apply(Lane::Main, &[op]).await.unwrap();
    let OperationResult::Acquired { lease, .. } = &applied.done[0] else {
        panic!("{applied:?}");
    };
    assert!(lease.remaining_ms(applied.now) <= 0, "{applied:?}");
    let next = granted(&other, "r").await;
    assert_eq!(next.token.number(), lease.token.number() + 1);
    for store in [ours, other] {
        store.close().await;
    }
}
