//! Members that end, stop, are cut off or are full.

use testkit::eventually;

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_leader_loses_no_grant() {
    let etcd = cluster(3, &[]).await;
    let store = open(&etcd).await;
    let first = granted(&store, "r").await;
    let leader = etcd.leader().await.unwrap();
    etcd.members[leader].kill().await.unwrap();
    // Held before and after: no second grant, and its owner can release it.
    eventually("two members serve", || async {
        matches!(
            try_acquire(&store, "r").await,
            Ok(OperationResult::Refused { .. })
        )
    })
    .await;
    let released = apply(&store, release(first.id)).await.unwrap();
    assert!(matches!(released, OperationResult::Released(_)), "{released:?}");
    let second = granted(&store, "r").await;
    assert_eq!(second.token.number(), first.token.number() + 1);
    etcd.members[leader].restart().await.unwrap();
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_member_is_replaced_by_another_within_one_call() {
    let etcd = cluster(3, &[]).await;
    let store = open(&etcd).await;
    granted(&store, "before").await;
    let leader = etcd.leader().await.unwrap();
    // Not the leader: an election is another test.
    let index = (0..3).find(|member| *member != leader).unwrap();
    while store.lanes.index() != index {
        store.lanes.abandon(store.lanes.index());
    }
    granted(&store, "on it").await;
    etcd.members[index].pause().await.unwrap();
    let result = try_acquire(&store, "after").await.unwrap();
    assert!(matches!(result, OperationResult::Acquired { .. }), "{result:?}");
    assert_ne!(store.lanes.index(), index);
    etcd.members[index].resume().await.unwrap();
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_majority_nothing_is_granted_or_read() {
    let etcd = cluster(3, &[]).await;
    let store = open(&etcd).await;
    let held = granted(&store, "held").await;
    for member in [0, 1] {
        etcd.members[member].kill().await.unwrap();
    }
    let result = try_acquire(&store, "new").await;
    assert!(
        matches!(result, Err(StoreError::Etcd(_) | StoreError::NoAnswer(_))),
        "{result:?}"
    );
    assert!(store.resource(&Resource::from("held")).await.is_err());
    assert!(store.expired_leases(10).await.is_err());
    for member in [0, 1] {
        etcd.members[member].restart().await.unwrap();
    }
    eventually("the store answers again", || async {
        store.leases(&[held.id]).await.is_ok()
    })
    .await;
    let read = store.leases(&[held.id]).await.unwrap().value;
    assert_eq!(read, [(Resource::from("held"), held)]);
    store.close().await;
}

/// A cluster whose links can be cut, a store that sends to its leader, and the leader.
async fn linked_cluster() -> (EtcdCluster, EtcdStore, usize) {
    let linked = EtcdOptions {
        has_links: true,
        ..options(&[])
    };
    let etcd = Throwaway::etcd_cluster(3, linked).await.unwrap();
    let store = open(&etcd).await;
    let leader = etcd.leader().await.unwrap();
    while store.lanes.index() != leader {
        store.lanes.abandon(store.lanes.index());
    }
    (etcd, store, leader)
}

/// Cuts the links between this member and the others.
fn cut_off(etcd: &EtcdCluster, member: usize) {
    etcd.links()
        .unwrap()
        .split(&[0, 1, 2].map(|other| usize::from(other == member)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_cut_off_from_the_others_grants_nothing() {
    let (etcd, store, leader) = linked_cluster().await;
    let held = granted(&store, "held").await;
    cut_off(&etcd, leader);
    // It cannot commit, so the store turns to the others, which know the lease.
    eventually("two members serve", || async {
        matches!(
            try_acquire(&store, "held").await,
            Ok(OperationResult::Refused { .. })
        )
    })
    .await;
    assert_ne!(store.lanes.index(), leader);
    etcd.links().unwrap().heal();
    let released = apply(&store, release(held.id)).await.unwrap();
    assert!(matches!(released, OperationResult::Released(_)), "{released:?}");
    store.close().await;
}

/// Repeats a release until the store answers.
async fn released_at_last(store: &EtcdStore, lease: LeaseId) -> OperationResult {
    for _ in 0..60 {
        match apply(store, release(lease)).await {
            Ok(result) => return result,
            Err(error) => eprintln!("{error}"),
        }
    }
    panic!("the release was never answered");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_sent_to_a_cut_off_leader_frees_the_lock_once() {
    // Sent while the leader cannot commit. If it is answered as released, it is; its repetition ends the same lease,
    // and neither of them ends the next one.
    let (etcd, store, leader) = linked_cluster().await;
    let held = granted(&store, "held").await;
    cut_off(&etcd, leader);
    let during = apply(&store, release(held.id)).await;
    assert!(
        matches!(
            during,
            Ok(OperationResult::Released(_)) | Err(StoreError::Etcd(_) | StoreError::NoAnswer(_))
        ),
        "{during:?}"
    );
    let again = released_at_last(&store, held.id).await;
    assert!(
        matches!(
            (&during, &again),
            (_, OperationResult::Lost(..)) | (Err(_), OperationResult::Released(_))
        ),
        "{during:?}, then {again:?}"
    );
    let next = granted(&store, "held").await;
    assert_eq!(next.token.number(), held.token.number() + 1);
    etcd.links().unwrap().heal();
    eventually("the old leader follows the new one", || async {
        etcd.leader().await.is_ok_and(|now| now != leader)
    })
    .await;
    let late = released_at_last(&store, held.id).await;
    assert!(matches!(late, OperationResult::Lost(..)), "{late:?}");
    let read = store.leases(&[next.id]).await.unwrap().value;
    assert_eq!(read, [(Resource::from("held"), next)]);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exhausted_quota_grants_nothing_until_there_is_space() {
    let etcd = cluster(1, &["--quota-backend-bytes=4194304"]).await;
    let store = open(&etcd).await;
    let held = granted(&store, "held").await;
    let filler = "x".repeat(100_000);
    let mut fill = 0;
    while etcd
        .ctl(&[0], &["put", &format!("/other/{fill}"), &filler])
        .await
        .is_ok()
    {
        fill += 1;
    }
    eventually("etcd refuses all writes", || async {
        etcd.ctl(&[0], &["alarm", "list"])
            .await
            .unwrap()
            .contains("NOSPACE")
    })
    .await;
    let refused = try_acquire(&store, "new").await;
    assert!(
        matches!(&refused, Err(StoreError::Etcd(why)) if why.contains("space")),
        "{refused:?}"
    );
    // Reads still work, and nothing was granted.
    assert_eq!(store.leases(&[held.id]).await.unwrap().value.len(), 1);
    assert!(
        store
            .resource(&Resource::from("new"))
            .await
            .unwrap()
            .value
            .state
            .lease
            .is_none()
    );
    etcd.ctl(&[0], &["del", "--prefix", "/other/"]).await.unwrap();
    etcd.compact_and_defragment().await.unwrap();
    etcd.ctl(&[0], &["alarm", "disarm"]).await.unwrap();
    granted(&store, "new").await;
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compaction_and_defragmentation_hide_no_change() {
    let etcd = cluster(3, &[]).await;
    let (ours, other) = (open(&etcd).await, open(&etcd).await);
    assert!(
        ours.next_notification().await.missed,
        "a watch begins with a resync"
    );
    for round in 0..3 {
        granted(&other, &format!("before {round}")).await;
        etcd.compact_and_defragment().await.unwrap();
        let name = Resource::from(format!("after {round}").as_str());
        granted(&other, &format!("after {round}")).await;
        loop {
            let notification = ours.next_notification().await;
            if notification.missed || notification.changed.contains(&name) {
                break;
            }
        }
    }
    for store in [ours, other] {
        store.close().await;
    }
}
