//! Errors of the workload's clients. All are expected: servers restart, and one is paused on purpose.

use thiserror::Error;

#[derive(Debug, Error)]
pub(super) enum WorkloadError {
    #[error("postgres: {0}")]
    Postgres(#[from] sqlx::Error),
    #[error("redis: {0}")]
    Redis(#[from] redis::RedisError),
    #[error("etcd: {0}")]
    Etcd(#[from] etcd_client::Error),
    #[error("zookeeper: {0}")]
    Zookeeper(#[from] zookeeper_client::Error),
    #[error("the server could not be paused or resumed: {0}")]
    Pause(#[from] std::io::Error),
    #[error("the lease service: {0}")]
    Service(#[from] leasehold_client::AcquireError),
    #[error("the lease service: {0}")]
    Client(#[from] leasehold_client::ClientError),
    #[error("HTTP: {0}")]
    Http(#[from] reqwest::Error),
    #[error("the lease is gone")]
    LeaseGone,
}
