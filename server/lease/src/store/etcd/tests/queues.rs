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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_whose_answer_was_lost_is_found() {
    // The answer to its join was lost, and no client waits for it: its replica keeps its key alive, and has to find it.
    let etcd = cluster(1, &[]).await;
    let store = open(&etcd).await;
    granted(&store, "r").await;
    let (lost, known) = (join(&store, "r").await, join(&store, "r").await);
    assert!(store.next_notification().await.missed);
    store.registration.leave(&Resource::from("r"), lost.id);
    store.run_maintenance(&RETENTION).await.unwrap();
    let heads = loop {
        let notification = store.next_notification().await;
        if !notification.heads.is_empty() {
            break notification.heads;
        }
    };
    let found: Vec<_> = heads.iter().map(|head| (head.waiter, head.in_ms)).collect();
    assert_eq!(found, [(lost.id, 0)]);
    // As the service does for a waiter that it does not have.
    let leave = Operation::Leave {
        resource: Resource::from("r"),
        waiter: lost.id,
    };
    apply(&store, leave).await.unwrap();
    assert_eq!(head(&store, "r").await, Some(known.id));
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_that_tries_again_is_registered_again() {
    // The answer to its join was lost, and its client still waits.
    let etcd = cluster(1, &[]).await;
    let store = open(&etcd).await;
    granted(&store, "r").await;
    let op = join(&store, "r").await;
    store.registration.leave(&Resource::from("r"), op.id);
    let again = Operation::Acquire(Box::new(AcquireOp {
        mode: AcquireMode::Waiting,
        ..op
    }));
    let queued = apply(&store, again).await.unwrap();
    assert!(matches!(queued, OperationResult::Queued { .. }), "{queued:?}");
    assert!(store.registration.has_waiters(&Resource::from("r")));
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_show_the_first_waiters_of_long_queues() {
    // 40 locks with 300 waiters of 900 bytes each: gRPC does not accept an answer with all of them.
    let etcd = cluster(1, &[]).await;
    let store = open(&etcd).await;
    let names: Vec<Resource> = (10..50)
        .map(|number| Resource::from(format!("{number}{}", "x".repeat(500)).as_str()))
        .collect();
    let value = values::WaiterValue {
        owner: "o".repeat(250),
        replica: store.replica.to_string(),
        since: 1_700_000_000_000,
        place: 0,
    };
    let value = values::encode(&value).unwrap();
    for name in &names {
        granted(&store, name.text().as_ref()).await;
        let ids = (0..300u16).map(|_| LeaseId::from_parts(1_700_000_000_000, random::bytes()));
        let keys: Vec<_> = ids.map(|id| store.keys.waiter(name, id)).collect();
        put_all(&store, keys.into_iter().map(|key| (key, value.clone()))).await;
    }
    let listed = store.held_by_names(&names).await.unwrap().value;
    let range = domain::lease::scope::NameRange {
        from: String::new(),
        to: None,
    };
    let paged = store.held_leases(&range, None, 100).await.unwrap().value;
    for rows in [listed, paged] {
        let shown: Vec<_> = rows.iter().map(|row| (row.waiters, row.queue.len())).collect();
        assert_eq!(shown, [(300, 32); 40]);
    }
    store.close().await;
}
