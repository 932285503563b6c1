//! An etcd lease that is kept alive, for locks, mutexes and elections.

use std::time::Duration;

use etcd_client::{Client, Error};
use tokio::time::sleep;

use crate::fault::WorkloadError;
use crate::rng;

const RETRY: Duration = Duration::from_secs(1);

pub(crate) async fn grant(mut client: Client, ttl: Duration) -> Result<i64, WorkloadError> {
    let seconds = i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX);
    Ok(client.lease_grant(seconds, None).await?.id())
}

/// One keep-alive on a stream of its own, so that a broken stream needs no detection. `false` when the lease is
/// gone.
pub(crate) async fn keep_alive(mut client: Client, lease: i64) -> Result<bool, WorkloadError> {
    match client.lease_keep_alive(lease).await {
        Ok(_) => Ok(true),
        Err(Error::LeaseKeepAliveError(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Renews until the lease is gone.
pub(crate) async fn keep_alive_every(
    client: Client,
    lease: i64,
    every: Duration,
) -> Result<(), WorkloadError> {
    let mut wait = every;
    loop {
        sleep(rng::about(wait)).await;
        wait = match keep_alive(client.clone(), lease).await {
            Ok(true) => every,
            Ok(false) => return Err(WorkloadError::LeaseGone),
            Err(fault) => {
                tracing::debug!(%fault, lease.id = lease, "a keep-alive of the demo failed and is tried again");
                RETRY
            }
        };
    }
}
