//! The resources of leases: an operation on a lease names only its id. From memory, otherwise read.

use std::collections::HashMap;

use domain::lease::LeaseId;
use domain::names::Resource;
use etcd_client::TxnOp;

use super::EtcdStore;
use super::connection::Link;
use super::values::{LeaseRecord, decode, resource};
use crate::operation::Operation;
use crate::store::StoreError;

/// Reads of one transaction; etcd allows 128 operations.
const READS_MAX: usize = 100;

impl EtcdStore {
    /// The resources of the leases that operations name.
    pub(super) async fn locate(
        &self,
        link: &Link,
        operations: &[Operation],
    ) -> Result<HashMap<LeaseId, Resource>, StoreError> {
        let mut lease_resources = HashMap::new();
        let mut missing = Vec::new();
        {
            let cache = self.cache.lock();
            for operation in operations {
                if let Some(id) = lease_of(operation) {
                    match cache.lease_resource(id) {
                        Some(resource) => drop(lease_resources.insert(id, resource)),
                        None => missing.push(id),
                    }
                }
            }
        }
        missing.sort_unstable();
        missing.dedup();
        for ids in missing.chunks(READS_MAX) {
            let reads: Vec<TxnOp> = ids
                .iter()
                .map(|id| TxnOp::get(self.keys.lease(*id), None))
                .collect();
            let (_, results) = self.read(link, reads).await?;
            for (id, pairs) in ids.iter().zip(results) {
                if let Some(pair) = pairs.first() {
                    let record: LeaseRecord = decode(pair.key(), pair.value())?;
                    lease_resources.insert(*id, resource(&record.resource));
                }
            }
        }
        let mut cache = self.cache.lock();
        for (id, resource) in &lease_resources {
            cache.put_lease_resource(*id, resource.clone());
        }
        Ok(lease_resources)
    }
}

fn lease_of(operation: &Operation) -> Option<LeaseId> {
    match operation {
        Operation::Renew { lease, .. }
        | Operation::Release { lease, .. }
        | Operation::Revoke { lease, .. } => Some(*lease),
        _ => None,
    }
}
