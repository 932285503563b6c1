//! Workers that stand in line for one lock, each holding it for a while in its turn.

use std::time::Duration;

use leasehold_client::Request;
use tokio::time::sleep;

use super::Access;
use crate::demo::fault::Fault;
use crate::demo::names;

const TTL: Duration = Duration::from_secs(30);
const WAIT: Duration = Duration::from_secs(300);
const HOLD: Duration = Duration::from_secs(40);

pub(in crate::demo) async fn takes_turns(access: Access, owner: &'static str) -> Result<(), Fault> {
    let request = Request::new(names::LINE, TTL).owner(owner).wait(WAIT);
    let lease = access.client.acquire(request).await?;
    tokio::select! {
        () = sleep(HOLD) => {}
        _ = lease.lost() => return Err(Fault::LeaseGone),
    }
    // One that is not given back runs out.
    let _ = lease.release().await;
    Ok(())
}
