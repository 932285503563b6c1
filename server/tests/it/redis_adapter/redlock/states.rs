//! What the values on the nodes mean together.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

fn why(lock: &ObservedLock) -> &str {
    match &lock.condition {
        Some(
            ObservedCondition::Split { why }
            | ObservedCondition::QuorumLost { why }
            | ObservedCondition::DualOwner { why }
            | ObservedCondition::Orphaned { why }
            | ObservedCondition::Undecided { why },
        ) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn each_distribution_of_values_has_its_state() {
    // Planted on five nodes, read twice: the second scan knows the values of the first.
    let nodes = Nodes::start(5).await;
    let backend = nodes.backend();
    for (key, values) in [
        ("lock:held", "vvvvv"),
        ("lock:with-attempt", "vvvw."),
        ("lock:split", "vvww."),
        ("lock:leftover", "v...."),
        ("lock:was-held", "vvvvv"),
        ("lock:overtaken", "vvvvv"),
    ] {
        nodes.plant(key, values).await;
    }
    let seen = observe(&backend).await.1;
    assert_eq!(seen.locks.len(), 6);
    for clear in [
        "lock:held",
        "lock:with-attempt",
        "lock:was-held",
        "lock:overtaken",
    ] {
        assert_eq!(seen.named(clear).condition, None, "{clear}");
    }
    let split = seen.named("lock:split");
    assert!(matches!(split.condition, Some(ObservedCondition::Split { .. })));
    assert!(
        why(split).starts_with("2 values at once, none on 3 of 5 nodes: "),
        "{}",
        why(split)
    );
    assert!(split.owner.is_unknown() && split.owner_count == 2);
    let leftover = seen.named("lock:leftover");
    assert!(matches!(
        leftover.condition,
        Some(ObservedCondition::Orphaned { .. })
    ));
    nodes.plant("lock:was-held", "vv...").await;
    nodes.plant("lock:overtaken", "vvwww").await;
    let seen = observe(&backend).await.1;
    let lost = seen.named("lock:was-held");
    assert!(
        matches!(lost.condition, Some(ObservedCondition::QuorumLost { .. })),
        "{lost:?}"
    );
    assert!(why(lost).contains("2 of 5 nodes now"), "{}", why(lost));
    let two = seen.named("lock:overtaken");
    assert!(
        matches!(two.condition, Some(ObservedCondition::DualOwner { .. })),
        "{two:?}"
    );
    // The states agree with the detail.
    for (key, state) in [
        ("lock:held", QuorumState::Held),
        ("lock:split", QuorumState::Split),
        ("lock:leftover", QuorumState::Leftover),
        ("lock:was-held", QuorumState::Lost),
        ("lock:overtaken", QuorumState::Held),
    ] {
        assert_eq!(quorum(&backend, key).await.state, state, "{key}");
    }
    let ranks: Vec<Option<u8>> = quorum(&backend, "lock:split")
        .await
        .nodes
        .iter()
        .map(|cell| cell.rank)
        .collect();
    assert_eq!(ranks, [Some(0), Some(0), Some(1), Some(1), None]);
}

#[tokio::test]
async fn remaining_time_ends_with_the_quorum() {
    // Three times on three nodes: the second longest is the last moment with two of them.
    let nodes = Nodes::start(3).await;
    for (node, ms) in nodes.0.iter().zip(["100000", "500000", "300000"]) {
        run(&mut driver(node).await, &["SET", "lock:a", "v", "PX", ms]).await;
    }
    nodes.plant("lock:b", "vvv").await;
    for node in &nodes.0[..2] {
        run(&mut driver(node).await, &["PERSIST", "lock:b"]).await;
    }
    let seen = observe(&nodes.backend()).await.1;
    let domain::observation::Lifetime::Leased { remaining_ms, .. } = seen.named("lock:a").lifetime else {
        panic!("it has a TTL");
    };
    assert!((200_000..=300_000).contains(&remaining_ms), "{remaining_ms}");
    assert!(matches!(
        seen.named("lock:b").lifetime,
        domain::observation::Lifetime::NoTtl { .. }
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acquires_and_releases_in_progress_are_no_split() {
    // Clients that go from node to node, as the algorithm does, while the nodes are scanned.
    let nodes = Nodes::start(3).await;
    let backend = nodes.backend();
    let mut connections = Vec::new();
    for node in &nodes.0 {
        connections.push(driver(node).await);
    }
    let stop = AtomicBool::new(false);
    let client = |name: &'static str| {
        let mut connections = connections.clone();
        let stop = &stop;
        async move {
            // Each attempt has a value of its own, as the algorithm demands.
            for attempt in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let value = &format!("{name}-{attempt}");
                for node in &mut connections {
                    run(node, &["SET", "lock:busy", value, "NX", "PX", "600000"]).await;
                }
                for node in &mut connections {
                    let delete = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end return 0";
                    run(node, &["EVAL", delete, "1", "lock:busy", value]).await;
                }
            }
        }
    };
    let scans = async {
        for _ in 0..12 {
            let seen = observe(&backend).await.1;
            let found: Vec<_> = seen
                .locks
                .iter()
                .filter_map(|lock| lock.condition.as_ref())
                .collect();
            assert!(found.is_empty(), "{found:?}");
        }
        stop.store(true, Ordering::Relaxed);
    };
    tokio::join!(client("one"), client("two"), scans);
}
