//! Workers that queue for one lock, each holding it for a while.

use std::time::Duration;

use leasehold_client::Request;
use tokio::time::sleep;

use super::Access;
use crate::fault::WorkloadError;
use crate::names;

const TTL: Duration = Duration::from_secs(30);
const WAIT: Duration = Duration::from_secs(300);
const HOLD: Duration = Duration::from_secs(40);

pub(crate) async fn wait_and_hold(access: Access, owner: &'static str) -> Result<(), WorkloadError> {
    let request = Request::new(names::QUEUE_LOCK, TTL).owner(owner).wait(WAIT);
    let lease = access.client.acquire(request).await?;
    tokio::select! {
        () = sleep(HOLD) => {}
        _ = lease.lost() => return Err(WorkloadError::LeaseGone),
    }
    // A failed release lets the lease expire.
    let _ = lease.release().await;
    Ok(())
}
