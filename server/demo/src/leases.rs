//! One lease protocol, implemented by several systems; `worker.rs` has the behaviour of workers.

use std::future::Future;
use std::time::Duration;

use super::fault::WorkloadError;

/// Acquires, renews and releases leases on one system, as its users do.
pub(super) trait Leases: Clone + Send + Sync + 'static {
    /// State of one acquisition.
    type Held: Send + Sync + 'static;

    /// `None` if another owner holds it.
    fn acquire(
        &self,
        resource: &str,
        owner: &str,
        ttl: Duration,
    ) -> impl Future<Output = Result<Option<Self::Held>, WorkloadError>> + Send;

    /// `false` when the lease was lost.
    fn renew(&self, held: &Self::Held) -> impl Future<Output = Result<bool, WorkloadError>> + Send;

    fn release(&self, held: Self::Held) -> impl Future<Output = Result<(), WorkloadError>> + Send;
}

/// Timeout of HTTP requests.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(5);
