//! Acquires many leases through the service's own call, before a measurement.

use domain::lease::{LeaseId, Metadata, Ttl, names};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};

use super::error::BenchError;
use super::test_server::Served;
use lease::{AcquireRequest, Acquired, LeaseCaller, LeaseService};

/// As many acquires as fit in one batch.
const CONCURRENT_MAX: usize = 512;

/// Acquires `count` locks named `prefix:number` as the principal of the server's token. The TTL function is called
/// for each lock.
pub(super) async fn fill(
    served: &Served,
    prefix: &str,
    count: usize,
    ttl_s: impl Fn() -> i64,
) -> Result<Vec<LeaseId>, BenchError> {
    acquire_many(served.leases(), &served.caller().await?, prefix, count, ttl_s).await
}

/// As [`fill`], of a service without a server.
pub(super) async fn acquire_many(
    leases: &LeaseService,
    caller: &LeaseCaller,
    prefix: &str,
    count: usize,
    ttl_s: impl Fn() -> i64,
) -> Result<Vec<LeaseId>, BenchError> {
    let acquire_one = |number: usize| {
        let ttl_s = ttl_s();
        async move { acquire(leases, caller, &format!("{prefix}:{number:06}"), ttl_s).await }
    };
    stream::iter(0..count)
        .map(acquire_one)
        .buffered(CONCURRENT_MAX)
        .try_collect()
        .await
}

async fn acquire(
    leases: &LeaseService,
    caller: &LeaseCaller,
    name: &str,
    ttl_s: i64,
) -> Result<LeaseId, BenchError> {
    let failed = |error: String| BenchError::bad_answer("our service", error);
    let request = AcquireRequest {
        resource: names::resource(name).map_err(|error| failed(error.to_string()))?,
        owner: names::owner("bench").map_err(|error| failed(error.to_string()))?,
        ttl: Ttl::parse(ttl_s, leases.ttl_seconds_max()).map_err(|error| failed(error.to_string()))?,
        wait: std::time::Duration::ZERO,
        metadata: Metadata::default(),
        idempotency_key: None,
    };
    match leases.acquire(caller, request).await {
        Ok(Acquired::Granted { lease, .. }) => Ok(lease.id),
        Ok(Acquired::Refused { .. }) => Err(failed(format!("{name} is held"))),
        Err(error) => Err(failed(error.to_string())),
    }
}
