//! The peer: etcd. Each client has a connection and a lease of its own; a transaction creates the key on the lease if
//! nobody has it, a delete gives it back.

use etcd_client::{Client, Compare, CompareOp, KvClient, PutOptions, Txn, TxnOp};

use crate::bench::error::BenchError;
use crate::bench::load::{self, CLIENTS, LockClient, Pace, Span};
use crate::throwaway::Etcd;

/// Longer than any measurement, in seconds: nobody has to renew it.
const LEASE_S: i64 = 3_600;

struct Holder {
    etcd: KvClient,
    lease: i64,
    number: usize,
}

impl LockClient for Holder {
    async fn pair(&mut self, name: u64) -> Result<(), BenchError> {
        let key = format!("bench/{}/{name}", self.number);
        let owner = format!("worker-{}", self.number);
        let absent = Compare::create_revision(key.as_str(), CompareOp::Equal, 0);
        let create = TxnOp::put(
            key.as_str(),
            owner,
            Some(PutOptions::new().with_lease(self.lease)),
        );
        let took = self
            .etcd
            .txn(Txn::new().when([absent]).and_then([create]))
            .await?;
        if !took.succeeded() {
            return Err(BenchError::answer("etcd", "somebody holds a lock of our own"));
        }
        let gave = self.etcd.delete(key, None).await?;
        if gave.deleted() == 1 {
            return Ok(());
        }
        Err(BenchError::answer("etcd", "a lock of our own was gone"))
    }
}

pub(super) async fn measure(server: &Etcd, span: Span) -> Result<Pace, BenchError> {
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let mut etcd = Client::connect([server.endpoint()], None).await?;
        let lease = etcd.lease_grant(LEASE_S, None).await?.id();
        clients.push(Holder {
            etcd: etcd.kv_client(),
            lease,
            number,
        });
    }
    load::run(clients, span).await
}
