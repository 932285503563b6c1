//! Waiters and the registration of their replica.

use testkit::eventually;

use super::*;

async fn join(store: &EtcdStore, resource: &str) -> AcquireOp {
    let op = acquire(resource, AcquireMode::OrWait);
    let queued = apply(store, Operation::Acquire(Box::new(op.clone())))
        .await
        .unwrap();
    assert!(matches!(queued, OperationResult::Queued { .. }), "{queued:?}");
    op
}

async fn head(store: &EtcdStore, resource: &str) -> Option<LeaseId> {
    let heads = store.heads(&[Resource::from(resource)]).await.unwrap().value;
    heads.first().map(|head| head.waiter)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_of_a_dead_replica_vanish() {
    let etcd = cluster(1, &[]).await;
    let (ours, dead) = (open(&etcd).await, open(&etcd).await);
    let held = granted(&ours, "r").await;
    let first = join(&dead, "r").await;
    let second = join(&ours, "r").await;
    assert_eq!(head(&ours, "r").await, Some(first.id));
    // As a killed process: it renews nothing any more.
    drop(dead);
    eventually("the living waiter is first", || async {
        ours.send_heartbeat().await.unwrap();
        head(&ours, "r").await == Some(second.id)
    })
    .await;
    let released = apply(&ours, release(held.id)).await.unwrap();
    assert!(matches!(released, OperationResult::Released(_)));
    let mut waiting = second;
    waiting.mode = AcquireMode::Waiting;
    let result = apply(&ours, Operation::Acquire(Box::new(waiting))).await.unwrap();
    assert!(matches!(result, OperationResult::Acquired { .. }), "{result:?}");
    assert_eq!(head(&ours, "r").await, None);
    ours.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_join_again_after_their_replica_was_taken_for_dead() {
    let etcd = cluster(1, &[]).await;
    let store = open(&etcd).await;
    granted(&store, "r").await;
    let op = join(&store, "r").await;
    assert!(store.next_notification().await.missed);
    let lease = format!("{:x}", store.registration.lease());
    etcd.ctl(&[0], &["lease", "revoke", &lease]).await.unwrap();
    assert_eq!(head(&store, "r").await, None);
    // The next renewal, 0.8 s after the last, finds that the lease is gone.
    eventually("it registers again", || async {
        store.send_heartbeat().await.unwrap();
        format!("{:x}", store.registration.lease()) != lease
    })
    .await;
    let heads = loop {
        let notification = store.next_notification().await;
        if !notification.heads.is_empty() {
            break notification.heads;
        }
    };
    assert_eq!((heads[0].waiter, heads[0].in_ms), (op.id, 0));
    let again = Operation::Acquire(Box::new(AcquireOp {
        mode: AcquireMode::Waiting,
        ..op.clone()
    }));
    let queued = apply(&store, again).await.unwrap();
    assert!(matches!(queued, OperationResult::Queued { .. }), "{queued:?}");
    assert_eq!(head(&store, "r").await, Some(op.id));
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conflict_costs_one_operation_of_a_batch() {
    // Another replica changed one of three resources that this one remembers.
    let etcd = cluster(1, &[]).await;
    let (ours, other) = (open(&etcd).await, open(&etcd).await);
    let names = ["a", "b", "c"];
    for name in names {
        let lease = granted(&ours, name).await;
        apply(&ours, release(lease.id)).await.unwrap();
    }
    granted(&other, "b").await;
    let batch = names.map(|name| Operation::Acquire(Box::new(acquire(name, AcquireMode::Once))));
    let applied = ours.apply(Lane::Main, &batch).await.unwrap();
    assert!(matches!(applied.done[0], OperationResult::Acquired { .. }));
    assert!(
        matches!(applied.done[1], OperationResult::Refused { .. }),
        "{:?}",
        applied.done[1]
    );
    assert!(matches!(applied.done[2], OperationResult::Acquired { .. }));
    for store in [ours, other] {
        store.close().await;
    }
}
