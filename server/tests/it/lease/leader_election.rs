//! The leases of the server's singleton tasks.

use std::time::Duration;

use ::lease::{LeaseCaller, LeaseConfig};
use domain::names::Resource;
use testkit::eventually;

use crate::support::{Store, TestServer};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn singleton_tasks_run_with_any_longest_ttl() {
    // Clients may ask for 5 s at most; the lease of a leader has a longer TTL.
    let config = LeaseConfig {
        max_ttl: Duration::from_secs(5),
        ..LeaseConfig::default()
    };
    let server = TestServer::builder()
        .lease(config)
        .start_on(Store::postgres().await)
        .await;
    let leases = &server.serving.leases;
    for name in ["leasehold/alerts", "leasehold/history"] {
        let resource = Resource::from(name);
        eventually("the task has a leader", async || {
            let found = leases.resource(&LeaseCaller::server(), &resource).await;
            found.unwrap().holder.is_some()
        })
        .await;
    }
}
