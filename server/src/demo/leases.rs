//! One lease protocol, kept by several systems; what a worker does with it is in `worker.rs`.

use std::future::Future;
use std::time::Duration;

use super::fault::Fault;

/// Acquires, renews and releases leases on one system, in the way its users do it.
pub(super) trait Leases: Clone + Send + Sync + 'static {
    /// What the holder must remember of one acquisition.
    type Held: Send + Sync + 'static;

    /// `None` when somebody else holds it.
    fn acquire(
        &self,
        resource: &str,
        owner: &str,
        ttl: Duration,
    ) -> impl Future<Output = Result<Option<Self::Held>, Fault>> + Send;

    /// `false` when the lease was lost.
    fn renew(&self, held: &Self::Held) -> impl Future<Output = Result<bool, Fault>> + Send;

    fn release(&self, held: Self::Held) -> impl Future<Output = Result<(), Fault>> + Send;
}

/// How long workers wait for an answer over HTTP.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Milliseconds, for statements and scripts.
pub(super) fn ms(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
