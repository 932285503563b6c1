//! Irregular keys: one without a TTL, and two of types that are not locks.

use std::time::Duration;

use redis::aio::ConnectionManager;
use redis::{AsyncCommands, cmd};
use tokio::time::sleep;

use crate::fault::WorkloadError;
use crate::rng;

pub(crate) const IMMORTAL: &str = "lock:warehouse/eu-west/reindex";
pub(crate) const LIST: &str = "lock:tenant_408:import-queue";
pub(crate) const STREAM: &str = "lock:tenant_408:import-events";

/// Restores them if they are gone, for example after a restart without data.
pub(crate) async fn maintain(mut server: ConnectionManager) -> Result<(), WorkloadError> {
    let value = serde_json::json!({ "ownerId": "reindexer-3", "leaseId": rng::lease_id() }).to_string();
    let _: bool = server.set_nx(IMMORTAL, value).await?;
    if !server.exists::<_, bool>(LIST).await? {
        let _: u64 = server.rpush(LIST, &["batch-17", "batch-18"]).await?;
    }
    if !server.exists::<_, bool>(STREAM).await? {
        let mut add = cmd("XADD");
        add.arg(STREAM).arg("*").arg("event").arg("imported");
        let _: String = add.query_async(&mut server).await?;
    }
    sleep(Duration::from_secs(10)).await;
    Ok(())
}
