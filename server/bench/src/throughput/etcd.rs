//! The peer etcd. Each client has its own connection and lease; a transaction creates the key if it does not exist,
//! a delete releases it.

use etcd_client::{Client, Compare, CompareOp, KvClient, PutOptions, Txn, TxnOp};

use crate::error::BenchError;
use crate::load::{self, CLIENTS, LoadSpan, LockClient, Pace};

/// Longer than any measurement, in seconds: needs no renewal.
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
        let acquired = self
            .etcd
            .txn(Txn::new().when([absent]).and_then([create]))
            .await?;
        if !acquired.succeeded() {
            return Err(BenchError::bad_answer(
                "etcd",
                "another client holds a lock of this benchmark",
            ));
        }
        let released = self.etcd.delete(key, None).await?;
        if released.deleted() == 1 {
            return Ok(());
        }
        Err(BenchError::bad_answer(
            "etcd",
            "a lock of this benchmark was lost",
        ))
    }
}

/// On the members at these addresses, each client on one of them.
pub(crate) async fn run_on_etcd(endpoints: &[String], span: LoadSpan) -> Result<Pace, BenchError> {
    let mut clients = Vec::new();
    for (number, endpoint) in (0..CLIENTS).zip(endpoints.iter().cycle()) {
        let mut etcd = Client::connect([endpoint], None).await?;
        let lease = etcd.lease_grant(LEASE_S, None).await?.id();
        clients.push(Holder {
            etcd: etcd.kv_client(),
            lease,
            number,
        });
    }
    load::run(clients, span).await
}
