//! Plain keys on leases, with the owner as value; and one key without a lease.

use std::time::Duration;

use etcd_client::{Client, Compare, CompareOp, PutOptions, Txn, TxnOp};
use tokio::time::sleep;

use super::{PREFIX, session};
use crate::fault::WorkloadError;
use crate::leases::Leases;

pub(crate) const WITHOUT_LEASE: &str = "/locks/warehouse/us-east/stock-count";

#[derive(Clone)]
pub(crate) struct KeyLeases {
    pub(crate) client: Client,
}

pub(crate) struct Lease(i64);

impl Leases for KeyLeases {
    type Held = Lease;

    async fn acquire(
        &self,
        resource: &str,
        owner: &str,
        ttl: Duration,
    ) -> Result<Option<Lease>, WorkloadError> {
        let key = format!("{PREFIX}{resource}");
        let lease = session::grant(self.client.clone(), ttl).await?;
        let is_free = Compare::version(key.as_str(), CompareOp::Equal, 0);
        let put = TxnOp::put(key, owner, Some(PutOptions::new().with_lease(lease)));
        let response = self
            .client
            .clone()
            .txn(Txn::new().when([is_free]).and_then([put]))
            .await?;
        if response.succeeded() {
            return Ok(Some(Lease(lease)));
        }
        self.release(Lease(lease)).await?;
        Ok(None)
    }

    async fn renew(&self, held: &Lease) -> Result<bool, WorkloadError> {
        session::keep_alive(self.client.clone(), held.0).await
    }

    async fn release(&self, held: Lease) -> Result<(), WorkloadError> {
        self.client.clone().lease_revoke(held.0).await?;
        Ok(())
    }
}

/// Restores the key if it is gone.
pub(crate) async fn maintain_key_without_lease(mut client: Client) -> Result<(), WorkloadError> {
    let is_free = Compare::version(WITHOUT_LEASE, CompareOp::Equal, 0);
    let put = TxnOp::put(WITHOUT_LEASE, "stock-counter-1", None);
    client.txn(Txn::new().when([is_free]).and_then([put])).await?;
    sleep(Duration::from_secs(10)).await;
    Ok(())
}
