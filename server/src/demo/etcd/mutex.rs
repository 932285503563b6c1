//! Mutexes through etcd's own lock service, whose keys are those of the `concurrency` package: one holds, the others
//! wait in the order in which they came.

use std::time::Duration;

use etcd_client::LockOptions;
use tokio::time::sleep;

use super::{Access, session};
use crate::demo::fault::Fault;

pub(in crate::demo) const CONTENDED: &str = "/locks/tenant_311:statement-run:2026-04";
pub(in crate::demo) const QUIET: &str = "/locks/search:reindex:products";
const TTL: Duration = Duration::from_secs(30);
const RENEW_EVERY: Duration = Duration::from_secs(10);

/// Waits for the mutex, holds it for a while, frees it and queues again.
pub(in crate::demo) async fn takes_turns(
    access: Access,
    name: &'static str,
    hold: Duration,
) -> Result<(), Fault> {
    let lease = session::grant(access.quick.clone(), TTL).await?;
    let turn = async {
        let mut client = access.patient.clone();
        let held = client
            .lock(name, Some(LockOptions::new().with_lease(lease)))
            .await?;
        sleep(hold).await;
        client.unlock(held.key()).await?;
        Ok(())
    };
    let alive = session::keep_alive_every(access.quick.clone(), lease, RENEW_EVERY);
    let ended = tokio::select! { ended = turn => ended, gone = alive => gone };
    // Whatever is left of it: a wait that broke off leaves its place in the queue to the lease.
    let _ = access.quick.clone().lease_revoke(lease).await;
    ended
}
