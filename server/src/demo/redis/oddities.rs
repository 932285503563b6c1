//! Keys that are not as they should be: one without a TTL, and two of types that no lock has.

use std::time::Duration;

use redis::aio::ConnectionManager;
use redis::{AsyncCommands, cmd};
use tokio::time::sleep;

use crate::demo::chance;
use crate::demo::fault::Fault;

pub(in crate::demo) const IMMORTAL: &str = "lock:warehouse/eu-west/reindex";
pub(in crate::demo) const LIST: &str = "lock:tenant_408:import-queue";
pub(in crate::demo) const STREAM: &str = "lock:tenant_408:import-events";

/// Puts them back should they be gone, as after a restart without the data.
pub(in crate::demo) async fn keep(mut server: ConnectionManager) -> Result<(), Fault> {
    let value = serde_json::json!({ "ownerId": "reindexer-3", "leaseId": chance::lease_id() }).to_string();
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
