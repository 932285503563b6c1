//! A worker that is paused beyond the end of its lease and then writes. The resource checks the token, rejects the
//! write, and the rejection is recorded.

use std::time::Duration;

use leasehold_client::Request;
use serde_json::json;
use tokio::time::sleep;

use super::Access;
use crate::fault::WorkloadError;
use crate::names;

const TTL_SECONDS: u64 = 5;
/// The next worker waits in time, and holds the lock when the stale writer returns.
const WAIT: Duration = Duration::from_secs(30);
const WORK: Duration = Duration::from_secs(4);
/// Time until the next pause.
const PAUSE: Duration = Duration::from_secs(25);

pub(crate) async fn write_with_stale_token(access: Access) -> Result<(), WorkloadError> {
    let (resource, zombie, next) = names::ZOMBIE;
    let body = json!({"resource": resource, "ownerId": zombie, "ttlSeconds": TTL_SECONDS});
    let granted = access.post("/v1/locks/acquire", &body).await?;
    let Some(token) = granted["fencingToken"].as_u64() else {
        sleep(WORK).await;
        return Ok(());
    };
    // No renewals from here on: for the service the worker has stopped.
    let request = Request::new(resource, Duration::from_secs(30))
        .owner(next)
        .wait(WAIT);
    let lease = access.client.acquire(request).await?;
    write(&access, next, lease.fencing_token()).await?;
    sleep(WORK).await;
    write(&access, zombie, token).await?;
    let _ = lease.release().await;
    sleep(PAUSE).await;
    Ok(())
}

/// The token check of the resource before a write.
async fn write(access: &Access, owner: &str, token: u64) -> Result<(), WorkloadError> {
    let (resource, ..) = names::ZOMBIE;
    let question = json!({
        "resource": resource, "fencingToken": token, "ownerId": owner, "source": names::ZOMBIE_SOURCE
    });
    let answer = access.post("/v1/fencing/check", &question).await?;
    if answer["accepted"] != true {
        tracing::debug!(
            lock.resource = resource,
            "a write with a stale token was rejected, as intended"
        );
    }
    Ok(())
}
