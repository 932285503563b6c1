//! The resources of leases: an operation on a lease names only its id. From memory, otherwise read.

use std::collections::HashMap;

use domain::lease::LeaseId;
use domain::names::Resource;
use etcd_client::TxnOp;

use super::EtcdStore;
use super::connection::Link;
use super::values::{LeaseHome, decode, resource};
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
        let mut homes = HashMap::new();
        let mut missing = Vec::new();
        {
            let memory = self.cache.lock();
            for operation in operations {
                if let Some(id) = lease_of(operation) {
                    match memory.home(id) {
                        Some(home) => drop(homes.insert(id, home)),
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
                    let home: LeaseHome = decode(pair.key(), pair.value())?;
                    homes.insert(*id, resource(&home.resource));
                }
            }
        }
        let mut memory = self.cache.lock();
        for (id, home) in &homes {
            memory.put_home(*id, home.clone());
        }
        Ok(homes)
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
