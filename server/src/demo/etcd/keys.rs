//! Plain keys on leases: the value names the owner. And one key that somebody forgot to put on a lease.

use std::time::Duration;

use etcd_client::{Client, Compare, CompareOp, PutOptions, Txn, TxnOp};
use tokio::time::sleep;

use super::{PREFIX, session};
use crate::demo::fault::Fault;
use crate::demo::leases::Leases;

pub(in crate::demo) const WITHOUT_LEASE: &str = "/locks/warehouse/us-east/stock-count";

#[derive(Clone)]
pub(in crate::demo) struct KeyLeases {
    pub(in crate::demo) client: Client,
}

pub(in crate::demo) struct Lease(i64);

impl Leases for KeyLeases {
    type Held = Lease;

    async fn acquire(&self, resource: &str, owner: &str, ttl: Duration) -> Result<Option<Lease>, Fault> {
        let key = format!("{PREFIX}{resource}");
        let lease = session::grant(self.client.clone(), ttl).await?;
        let is_free = Compare::version(key.as_str(), CompareOp::Equal, 0);
        let put = TxnOp::put(key, owner, Some(PutOptions::new().with_lease(lease)));
        let taken = self
            .client
            .clone()
            .txn(Txn::new().when([is_free]).and_then([put]))
            .await?;
        if taken.succeeded() {
            return Ok(Some(Lease(lease)));
        }
        self.release(Lease(lease)).await?;
        Ok(None)
    }

    async fn renew(&self, held: &Lease) -> Result<bool, Fault> {
        session::keep_alive(self.client.clone(), held.0).await
    }

    async fn release(&self, held: Lease) -> Result<(), Fault> {
        self.client.clone().lease_revoke(held.0).await?;
        Ok(())
    }
}

/// Puts it back should it be gone.
pub(in crate::demo) async fn keep_without_lease(mut client: Client) -> Result<(), Fault> {
    let is_free = Compare::version(WITHOUT_LEASE, CompareOp::Equal, 0);
    let put = TxnOp::put(WITHOUT_LEASE, "stock-counter-1", None);
    client.txn(Txn::new().when([is_free]).and_then([put])).await?;
    sleep(Duration::from_secs(10)).await;
    Ok(())
}
