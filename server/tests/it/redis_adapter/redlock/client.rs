//! The redlock client of npm in a process of its own.

use domain::observation::ObservedCondition;
use domain::quorum::QuorumState;

use super::{Nodes, quorum, redlock};
use crate::redis_adapter::observe;
use crate::support::lock_client::LockClient;
use testkit::eventually;

/// One holder.
pub(super) struct Holder {
    client: LockClient,
    /// `None`: it did not get the lock.
    pub(super) value: Option<String>,
}

impl Holder {
    pub(super) async fn acquire(nodes: &Nodes, key: &str, ttl_ms: u32) -> Self {
        let ttl = ttl_ms.to_string();
        let ports: Vec<String> = nodes.0.iter().map(|node| node.port().to_string()).collect();
        let args = [key, &ttl].into_iter().chain(ports.iter().map(String::as_str));
        let mut client = LockClient::start("redlock.mjs", &args.collect::<Vec<_>>());
        let value = client.line().await.strip_prefix("held ").map(str::to_owned);
        Self { client, value }
    }

    /// A free lock. The library returns as soon as a quorum has it; this waits for every node.
    pub(super) async fn acquire_on_all(nodes: &Nodes, key: &str, ttl_ms: u32) -> Self {
        let holder = Self::acquire(nodes, key, ttl_ms).await;
        assert!(holder.value.is_some(), "{key} is not free");
        eventually("each node has it", async || {
            let values = nodes.values(key).await;
            values.iter().all(|value| *value == holder.value)
        })
        .await;
        holder
    }

    /// `extend` or `release`; whether it succeeded.
    pub(super) async fn run(&mut self, what: &str) -> bool {
        self.client.send(what).await;
        self.client.line().await == "done"
    }
}

#[tokio::test]
async fn a_real_client_is_one_row_until_it_releases() {
    // Acquire, extend, release, as the library does them on three nodes.
    let nodes = Nodes::start(3).await;
    let backend = nodes.backend();
    let mut holder = Holder::acquire_on_all(&nodes, "lock:orders", 30_000).await;
    let (pass, seen) = observe(&backend).await;
    assert_eq!(seen.locks.len(), 1);
    let row = seen.named("lock:orders");
    assert_eq!((&row.source, row.owner_count), (&redlock(), 1));
    assert_eq!(row.condition, None);
    assert!(row.generation.is_known() && pass.clock.is_known());
    assert!(
        pass.sources
            .iter()
            .all(|part| part.coverage.is_complete() && part.fault.is_none())
    );
    let shown = quorum(&backend, "lock:orders").await;
    assert_eq!(
        (shown.state, shown.needed, shown.nodes.len()),
        (QuorumState::Held, 2, 3)
    );
    for (cell, node) in shown.nodes.iter().zip(&nodes.0) {
        assert_eq!(cell.node, format!("127.0.0.1:{}", node.port()));
        assert!(cell.reachable && cell.rank == Some(0) && cell.remaining_ms.is_some());
        assert!(cell.age_ms.is_some() && cell.clock_offset_ms.is_some());
    }
    // The same client cannot get it twice: its failed attempt leaves nothing.
    assert_eq!(Holder::acquire(&nodes, "lock:orders", 30_000).await.value, None);
    assert!(holder.run("extend").await);
    assert!(holder.run("release").await);
    eventually("each node has released it", async || {
        observe(&backend).await.1.locks.is_empty()
    })
    .await;
}

#[tokio::test]
async fn two_clients_after_a_lost_quorum_are_two_owners() {
    // Two of three nodes restart without their data, and another client gets them.
    let nodes = Nodes::start(3).await;
    let backend = nodes.backend();
    let first = Holder::acquire(&nodes, "lock:a", 600_000).await;
    assert!(first.value.is_some());
    observe(&backend).await;
    for node in &nodes.0[1..] {
        node.kill().await.unwrap();
        node.restart().await.unwrap();
    }
    let lost = observe(&backend).await.1;
    let lost = lost.named("lock:a");
    assert!(
        matches!(&lost.condition, Some(ObservedCondition::QuorumLost { why }) if why.contains("1 of 3")),
        "{lost:?}"
    );
    let second = Holder::acquire(&nodes, "lock:a", 600_000).await;
    assert!(second.value.is_some(), "two nodes are a quorum");
    let seen = observe(&backend).await.1;
    let row = seen.named("lock:a");
    assert!(
        matches!(&row.condition, Some(ObservedCondition::DualOwner { why }) if why.contains("2 of 3 nodes")),
        "{row:?}"
    );
    assert_eq!(row.owner_count, 2);
}
