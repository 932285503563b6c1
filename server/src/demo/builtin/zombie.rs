//! A worker that is paused past the end of its lease and then writes what it had decided on. The resource asks whose
//! token is good, refuses the write, and the refusal enters the ledger.

use std::time::Duration;

use leasehold_client::Request;
use serde_json::json;
use tokio::time::sleep;

use super::Access;
use crate::demo::fault::Fault;
use crate::demo::names;

const TTL_SECONDS: u64 = 5;
/// The next worker is there in time, and stays over the zombie's return.
const WAIT: Duration = Duration::from_secs(30);
const WORK: Duration = Duration::from_secs(4);
/// Until the next one falls asleep.
const PAUSE: Duration = Duration::from_secs(25);

pub(in crate::demo) async fn writes_late(access: Access) -> Result<(), Fault> {
    let (resource, zombie, next) = names::ZOMBIE;
    let body = json!({"resource": resource, "ownerId": zombie, "ttlSeconds": TTL_SECONDS});
    let granted = access.post("/v1/locks/acquire", &body).await?;
    let Some(token) = granted["fencingToken"].as_u64() else {
        sleep(WORK).await;
        return Ok(());
    };
    // It renews nothing from here on: for the service it is as good as stopped.
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

/// What the resource asks before it writes.
async fn write(access: &Access, owner: &str, token: u64) -> Result<(), Fault> {
    let (resource, ..) = names::ZOMBIE;
    let question = json!({
        "resource": resource, "fencingToken": token, "ownerId": owner, "source": names::ZOMBIE_SOURCE
    });
    let answer = access.post("/v1/fencing/check", &question).await?;
    if answer["accepted"] != true {
        tracing::debug!(
            lock.resource = resource,
            "the demo's zombie was refused, as it should be"
        );
    }
    Ok(())
}
