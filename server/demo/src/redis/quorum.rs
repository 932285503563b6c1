//! Locks on three independent servers by the Redlock algorithm, and two of them without a quorum.

use std::time::Duration;

use domain::duration::millis;
use redis::Script;
use redis::aio::ConnectionManager;
use tokio::time::sleep;

use super::keys::{RELEASE, RENEW};
use crate::fault::WorkloadError;
use crate::leases::Leases;
use crate::rng;

/// Two owners got one node each.
pub(crate) const SPLIT: &str = "lock:checkout:settlement:batch-77";
const SPLIT_OWNERS: [&str; 2] = ["api-14", "api-09"];
/// Two nodes lose the key of this one.
pub(crate) const LOST: &str = "lock:checkout:settlement:batch-78";

const PLANTED_TTL_MS: i64 = 120_000;
const REFRESH: Duration = Duration::from_secs(13);
const LOST_AFTER: Duration = Duration::from_secs(6);
const LOST_FOR: Duration = Duration::from_secs(45);

#[derive(Clone)]
pub(crate) struct QuorumLeases {
    pub(crate) nodes: Vec<ConnectionManager>,
}

pub(crate) struct QuorumLease {
    name: String,
    value: String,
    ttl: Duration,
}

impl QuorumLeases {
    const fn quorum(&self) -> usize {
        self.nodes.len() / 2 + 1
    }

    /// Nodes on which the script succeeds; a node that does not answer is left out.
    async fn run(&self, script: &str, held: &QuorumLease) -> usize {
        let script = Script::new(script);
        let mut count = 0;
        for node in &self.nodes {
            let mut call = script.key(&held.name);
            call.arg(&held.value).arg(millis(held.ttl));
            let done: Result<bool, _> = call.invoke_async(&mut node.clone()).await;
            count += usize::from(done.unwrap_or(false));
        }
        count
    }
}

const ACQUIRE: &str = "
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
return 0";

impl Leases for QuorumLeases {
    type Held = QuorumLease;

    async fn acquire(
        &self,
        resource: &str,
        owner: &str,
        ttl: Duration,
    ) -> Result<Option<QuorumLease>, WorkloadError> {
        let held = QuorumLease {
            name: format!("lock:{resource}"),
            value: value(owner),
            ttl,
        };
        if self.run(ACQUIRE, &held).await >= self.quorum() {
            return Ok(Some(held));
        }
        self.run(RELEASE, &held).await;
        Ok(None)
    }

    async fn renew(&self, held: &QuorumLease) -> Result<bool, WorkloadError> {
        Ok(self.run(RENEW, held).await >= self.quorum())
    }

    async fn release(&self, held: QuorumLease) -> Result<(), WorkloadError> {
        self.run(RELEASE, &held).await;
        Ok(())
    }
}

fn value(owner: &str) -> String {
    serde_json::json!({ "ownerId": owner, "leaseId": rng::lease_id() }).to_string()
}

/// Two values, each on one of the nodes, extended by their owners.
pub(crate) async fn stay_split(leases: QuorumLeases) -> Result<(), WorkloadError> {
    let values = SPLIT_OWNERS.map(value);
    loop {
        for (node, value) in leases.nodes.iter().zip(&values) {
            set(node, SPLIT, value).await?;
        }
        sleep(REFRESH).await;
    }
}

/// A lock whose keys vanish on all nodes but one, as after restarts without data.
pub(crate) async fn lose_quorum(leases: QuorumLeases) -> Result<(), WorkloadError> {
    let value = value("api-11");
    for node in &leases.nodes {
        set(node, LOST, &value).await?;
    }
    sleep(LOST_AFTER).await;
    for node in leases.nodes.iter().skip(1) {
        let _: u64 = redis::cmd("DEL").arg(LOST).query_async(&mut node.clone()).await?;
    }
    sleep(LOST_FOR).await;
    Ok(())
}

async fn set(node: &ConnectionManager, key: &str, value: &str) -> Result<(), WorkloadError> {
    let mut set = redis::cmd("SET");
    set.arg(key).arg(value).arg("PX").arg(PLANTED_TTL_MS);
    let _: String = set.query_async(&mut node.clone()).await?;
    Ok(())
}
