//! A lease of etcd that is kept alive: what locks, mutexes and elections hang on.

use std::time::Duration;

use etcd_client::{Client, Error};
use tokio::time::sleep;

use crate::demo::chance;
use crate::demo::fault::Fault;

const RETRY: Duration = Duration::from_secs(1);

pub(in crate::demo) async fn grant(mut client: Client, ttl: Duration) -> Result<i64, Fault> {
    let seconds = i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX);
    Ok(client.lease_grant(seconds, None).await?.id())
}

/// One keep-alive, on a stream of its own: a stream that broke with the server does not have to be noticed.
/// `false` when the lease is gone.
pub(in crate::demo) async fn keep_alive(mut client: Client, lease: i64) -> Result<bool, Fault> {
    match client.lease_keep_alive(lease).await {
        Ok(_) => Ok(true),
        Err(Error::LeaseKeepAliveError(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Renews for ever; ends with a fault only when the lease is gone.
pub(in crate::demo) async fn keep_alive_every(
    client: Client,
    lease: i64,
    every: Duration,
) -> Result<(), Fault> {
    let mut wait = every;
    loop {
        sleep(chance::about(wait)).await;
        wait = match keep_alive(client.clone(), lease).await {
            Ok(true) => every,
            Ok(false) => return Err(Fault::LeaseGone),
            Err(fault) => {
                tracing::debug!(%fault, lease.id = lease, "a keep-alive of the demo failed and is tried again");
                RETRY
            }
        };
    }
}
