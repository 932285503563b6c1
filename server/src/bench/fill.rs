//! Many leases at once, through the service's own call: what is measured comes after.

use domain::lease::{LeaseId, Metadata, Ttl, names};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};

use super::error::BenchError;
use super::served::Served;
use crate::lease::{AcquireRequest, Acquired, Caller, LeaseService};

/// As many acquires as one batch takes.
const AT_ONCE: usize = 512;

/// Takes `many` locks, as the principal of the server's token, named `prefix:number`. The TTL of each is asked for when its turn comes.
pub(super) async fn fill(
    served: &Served,
    prefix: &str,
    many: usize,
    ttl_s: impl Fn() -> i64,
) -> Result<Vec<LeaseId>, BenchError> {
    let (leases, caller) = (served.leases(), &served.caller().await?);
    let one = |number: usize| {
        let ttl_s = ttl_s();
        async move { take(leases, caller, &format!("{prefix}:{number:06}"), ttl_s).await }
    };
    stream::iter(0..many)
        .map(one)
        .buffered(AT_ONCE)
        .try_collect()
        .await
}

async fn take(leases: &LeaseService, caller: &Caller, name: &str, ttl_s: i64) -> Result<LeaseId, BenchError> {
    let broken = |error: String| BenchError::answer("our service", error);
    let request = AcquireRequest {
        resource: names::resource(name).map_err(|error| broken(error.to_string()))?,
        owner: names::owner("bench").map_err(|error| broken(error.to_string()))?,
        ttl: Ttl::parse(ttl_s, leases.ttl_seconds_max()).map_err(|error| broken(error.to_string()))?,
        wait: std::time::Duration::ZERO,
        metadata: Metadata::default(),
        idempotency_key: None,
    };
    match leases.acquire(caller, request).await {
        Ok(Acquired::Granted { lease, .. }) => Ok(lease.id),
        Ok(Acquired::Refused { .. }) => Err(broken(format!("{name} is held"))),
        Err(error) => Err(broken(error.to_string())),
    }
}
