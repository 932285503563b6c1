//! Forced unlocks of a Redlock: on all nodes, with a result per node.

use super::*;

#[tokio::test]
async fn a_real_holder_is_released_on_all_nodes_and_cannot_extend() {
    // Compare-and-delete on each node; the next client gets it at once.
    let nodes = Nodes::start(3).await;
    let backend = nodes.backend();
    let mut holder = Holder::acquire_on_all(&nodes, "lock:orders", 600_000).await;
    let resource = Resource::from("lock:orders");
    let seen = generation(&backend, &redlock(), &resource).await;
    assert_eq!(
        unlock(&backend, "lock:orders").await,
        (Release::Released, vec![NodeResult::Deleted; 3])
    );
    assert!(!holder.run("extend").await, "it has lost the lock");
    let next = Holder::acquire(&nodes, "lock:orders", 600_000).await;
    assert!(next.value.is_some());
    // The old holding is not the next one's.
    let again = backend
        .release(&redlock(), &resource, &seen, &act())
        .await
        .unwrap();
    assert!(matches!(again, Release::HolderChanged { .. }), "{again:?}");
    assert_eq!(nodes.values("lock:orders").await, vec![next.value; 3]);
}

#[tokio::test]
async fn both_values_of_a_split_are_released_and_other_values_are_not() {
    // First two values without a quorum, then one with a quorum and an attempt of another client.
    let nodes = Nodes::start(3).await;
    let backend = nodes.backend();
    nodes.plant("lock:split", "vw.").await;
    let (result, each) = unlock(&backend, "lock:split").await;
    assert_eq!(result, Release::Released);
    assert_eq!(
        each,
        [NodeResult::Deleted, NodeResult::Deleted, NodeResult::NoKey]
    );
    assert_eq!(nodes.values("lock:split").await, [None, None, None]);
    nodes.plant("lock:held", "vvw").await;
    let (result, each) = unlock(&backend, "lock:held").await;
    assert_eq!(result, Release::Released);
    assert_eq!(
        each,
        [NodeResult::Deleted, NodeResult::Deleted, NodeResult::OtherValue]
    );
    assert_eq!(nodes.values("lock:held").await[2].as_deref(), Some("w"));
    // A copy that a release of ours has left is no lost quorum.
    nodes.plant("lock:again", "vvv").await;
    observe(&backend).await;
    unlock(&backend, "lock:again").await;
    nodes.plant("lock:again", "v..").await;
    let seen = observe(&backend).await.1;
    let row = seen.named("lock:again");
    assert!(
        matches!(row.condition, Some(ObservedCondition::Orphaned { .. })),
        "{row:?}"
    );
}

#[tokio::test]
async fn released_means_that_no_quorum_can_have_the_value() {
    // One silent node cannot; with two, nothing is sent.
    let nodes = Nodes::start(3).await;
    let backend = nodes.backend();
    nodes.plant("lock:a", "vvv").await;
    nodes.plant("lock:b", "vvv").await;
    let resource = Resource::from("lock:b");
    let of_b = generation(&backend, &redlock(), &resource).await;
    nodes.0[0].kill().await.unwrap();
    let (result, each) = unlock(&backend, "lock:a").await;
    assert_eq!(result, Release::Released);
    assert_eq!(
        each,
        [NodeResult::Unreachable, NodeResult::Deleted, NodeResult::Deleted]
    );
    nodes.0[1].kill().await.unwrap();
    let refused = backend
        .release(&redlock(), &resource, &of_b, &act())
        .await
        .unwrap();
    assert!(
        matches!(&refused, Release::Refused { why, .. }
            if why.contains("2 of 3 nodes do not answer") && why.contains("nothing was deleted")),
        "{refused:?}"
    );
    let left: bool = redis::cmd("EXISTS")
        .arg("lock:b")
        .query_async(&mut driver(&nodes.0[2]).await)
        .await
        .unwrap();
    assert!(left);
}

#[tokio::test]
async fn nodes_that_refuse_the_account_are_named() {
    // The account exists on one node of three: two keep the value, which is a quorum.
    let nodes = Nodes::start(3).await;
    run(
        &mut driver(&nodes.0[0]).await,
        &["ACL", "SETUSER", "unlocker", "on", ">pw", "~*", "&*", "+@all"],
    )
    .await;
    for node in &nodes.0[1..] {
        let rule = ["ACL", "SETUSER", "unlocker", "on", ">pw", "~other", "+@all"];
        run(&mut driver(node).await, &rule).await;
    }
    let mut setup = nodes.setup();
    setup.redis.unlock_user = Some("unlocker".to_owned());
    setup.redis.unlock_password = Some("pw".into());
    let backend = setup.backend();
    nodes.plant("lock:a", "vvv").await;
    let (result, each) = unlock(&backend, "lock:a").await;
    assert_eq!(
        each,
        [NodeResult::Deleted, NodeResult::Refused, NodeResult::Refused]
    );
    assert!(
        matches!(&result, Release::Refused { why, .. }
            if why.starts_with("deleted on 1 of 3 nodes; 2 can still have the value, which is a quorum")),
        "{result:?}"
    );
    let unconfigured = nodes.setup().backend();
    assert!(
        ::backends::no_release(&unconfigured)
            .unwrap()
            .contains("unlock_user")
    );
}

#[tokio::test]
async fn nodes_lost_during_the_read_leave_every_copy() {
    // Two of three nodes are connected and do not answer the read: nothing is deleted on the third.
    let nodes = Nodes::start(3).await;
    let backend = nodes.backend();
    nodes.plant("lock:a", "vvv").await;
    let resource = Resource::from("lock:a");
    let seen = generation(&backend, &redlock(), &resource).await;
    for node in &nodes.0[..2] {
        node.pause().await.unwrap();
    }
    let refused = backend.release(&redlock(), &resource, &seen, &act()).await;
    for node in &nodes.0[..2] {
        node.resume().await.unwrap();
    }
    let refused = refused.unwrap();
    assert!(
        matches!(&refused, Release::Refused { why, .. } if why.contains("nothing was deleted")),
        "{refused:?}"
    );
    assert_eq!(nodes.values("lock:a").await, vec![Some("v".to_owned()); 3]);
}
