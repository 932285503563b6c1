//! How workers behave with a lease: renew for ever, never renew, fall silent, come and go, leave it behind.
//! The same on every system; which ones, and under which names, is in `cast.rs`.

use std::time::Duration;

use tokio::time::sleep;

use super::chance;
use super::fault::Fault;
use super::leases::Leases;

/// Before the next attempt when somebody else holds the lock, or a renewal failed.
const RETRY: Duration = Duration::from_secs(1);
/// From the end of a lease that ran out until somebody takes it again.
const GAP: Duration = Duration::from_millis(1_500);
/// Renewals of a worker that is going to die: enough for its cadence to be learnt.
const RENEWALS_BEFORE_DEATH: u32 = 4;

#[derive(Debug, Clone, Copy)]
pub(super) struct Rhythm {
    pub(super) ttl: Duration,
    pub(super) every: Duration,
}

impl Rhythm {
    pub(super) const fn secs(ttl: u64, every: u64) -> Self {
        Self {
            ttl: Duration::from_secs(ttl),
            every: Duration::from_secs(every),
        }
    }
}

/// Holds the lease for as long as it can, and takes it again should it be lost.
pub(super) async fn steady<L: Leases>(
    leases: L,
    resource: String,
    owner: String,
    rhythm: Rhythm,
) -> Result<(), Fault> {
    match leases.acquire(&resource, &owner, rhythm.ttl).await? {
        Some(held) => renew(&leases, &held, rhythm.every, u32::MAX).await,
        None => sleep(RETRY).await,
    }
    Ok(())
}

/// Renews a few times and then dies without releasing; somebody else takes over when the lease has run out.
pub(super) async fn falls_silent<L: Leases>(
    leases: L,
    resource: String,
    owner: String,
    rhythm: Rhythm,
) -> Result<(), Fault> {
    match leases.acquire(&resource, &owner, rhythm.ttl).await? {
        Some(held) => {
            renew(&leases, &held, rhythm.every, RENEWALS_BEFORE_DEATH).await;
            sleep(rhythm.ttl + GAP).await;
        }
        None => sleep(RETRY).await,
    }
    Ok(())
}

/// Never renews: the lease runs out, and is taken again.
pub(super) async fn runs_out<L: Leases>(
    leases: L,
    resource: String,
    owner: String,
    ttl: Duration,
) -> Result<(), Fault> {
    match leases.acquire(&resource, &owner, ttl).await? {
        Some(_) => sleep(ttl + GAP).await,
        None => sleep(RETRY).await,
    }
    Ok(())
}

/// A short job: holds the lock for some seconds and releases it.
pub(super) async fn comes_and_goes<L: Leases>(
    leases: L,
    resource: String,
    owner: String,
) -> Result<(), Fault> {
    if let Some(held) = leases.acquire(&resource, &owner, Duration::from_secs(15)).await? {
        sleep(chance::between(Duration::from_secs(2), Duration::from_secs(10))).await;
        leases.release(held).await?;
    }
    sleep(chance::between(RETRY, 4 * RETRY)).await;
    Ok(())
}

/// Takes the lock, and is never heard of again. On a system that keeps expired records, this is one.
pub(super) async fn left_behind<L: Leases>(leases: L, resource: String, owner: String) -> Result<(), Fault> {
    leases.acquire(&resource, &owner, Duration::from_secs(5)).await?;
    std::future::pending().await
}

/// Until `times` renewals are done or the lease is lost. A server that is away is asked again, as real clients do:
/// it may be back before the lease has run out.
async fn renew<L: Leases>(leases: &L, held: &L::Held, every: Duration, times: u32) {
    let mut done = 0;
    let mut wait = every;
    while done < times {
        sleep(chance::about(wait)).await;
        match leases.renew(held).await {
            Ok(true) => (done, wait) = (done + 1, every),
            Ok(false) => return,
            Err(fault) => {
                tracing::debug!(%fault, "a renewal of the demo's workload failed and is tried again");
                wait = RETRY;
            }
        }
    }
}
