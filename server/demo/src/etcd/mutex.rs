//! Mutexes of etcd's lock service, with the keys of the `concurrency` package: one holds, the others wait in order.

use std::time::Duration;

use etcd_client::LockOptions;
use tokio::time::sleep;

use super::{Access, session};
use crate::fault::WorkloadError;

pub(crate) const CONTENDED: &str = "/locks/tenant_311:statement-run:2026-04";
pub(crate) const QUIET: &str = "/locks/search:reindex:products";
const TTL: Duration = Duration::from_secs(30);
const RENEW_EVERY: Duration = Duration::from_secs(10);

/// Waits for the mutex, holds it for a while, releases it and queues again.
pub(crate) async fn wait_and_hold(
    access: Access,
    name: &'static str,
    hold: Duration,
) -> Result<(), WorkloadError> {
    let lease = session::grant(access.quick.clone(), TTL).await?;
    let hold_once = async {
        let mut client = access.patient.clone();
        let held = client
            .lock(name, Some(LockOptions::new().with_lease(lease)))
            .await?;
        sleep(hold).await;
        client.unlock(held.key()).await?;
        Ok(())
    };
    let keep_alive = session::keep_alive_every(access.quick.clone(), lease, RENEW_EVERY);
    let ended = tokio::select! { ended = hold_once => ended, lost = keep_alive => lost };
    // Also removes the queue entry of an interrupted wait.
    let _ = access.quick.clone().lease_revoke(lease).await;
    ended
}
