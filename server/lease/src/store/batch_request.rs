//! Rows that a batch refers to.

use std::sync::Arc;

use domain::lease::LeaseId;
use domain::names::Resource;

use crate::operation::{KeyName, Operation};

#[derive(Default)]
pub(super) struct BatchRequest {
    pub(super) resources: Vec<Resource>,
    pub(super) leases: Vec<LeaseId>,
    pub(super) keys: Vec<[Arc<str>; 2]>,
    /// Whether one of the keys is known to be bound, and has to be read: that of a repeated attempt or of an unclaimed lease.
    pub(super) has_bound_keys: bool,
}

impl BatchRequest {
    pub(super) fn from_operations(operations: &[Operation]) -> Self {
        let mut request = Self::default();
        for operation in operations {
            match operation {
                Operation::Acquire(op) => {
                    request.resources.push(op.resource.clone());
                    if let Some(key) = &op.key {
                        request.keys.push(parts(&key.name));
                        request.has_bound_keys |= op.mode.has_bound_key();
                    }
                }
                Operation::ClaimKey(key) => request.keys.push(parts(&key.name)),
                Operation::Release { lease, unbind, .. } => {
                    request.leases.push(*lease);
                    request.keys.extend(unbind.as_ref().map(parts));
                    request.has_bound_keys |= unbind.is_some();
                }
                Operation::Renew { lease, .. } | Operation::Revoke { lease, .. } => {
                    request.leases.push(*lease)
                }
                Operation::Expire { resource } | Operation::Leave { resource, .. } => {
                    request.resources.push(resource.clone());
                }
                Operation::Reject(_) => {}
            }
        }
        request
    }

    pub(super) fn is_empty(&self) -> bool {
        self.resources.is_empty() && self.leases.is_empty() && self.keys.is_empty()
    }
}

fn parts(KeyName { issuer, key }: &KeyName) -> [Arc<str>; 2] {
    [issuer.clone(), key.clone()]
}

#[cfg(test)]
mod tests {
    use domain::lease::{Metadata, Ttl};
    use domain::names::OwnerId;

    use super::*;
    use crate::operation::{AcquireMode, AcquireOp, IdempotencyKey};

    #[test]
    fn the_key_of_a_repeated_attempt_is_read() {
        // A batch that assumes it to be new would be decided twice.
        let op = AcquireOp {
            resource: Resource::from("r"),
            id: LeaseId::from_parts(1_700_000_000_000, [1; 10]),
            owner: OwnerId::new("o"),
            issuer: "t".into(),
            ttl: Ttl::parse(30, 3_600).unwrap(),
            metadata: Metadata::default(),
            key: Some(IdempotencyKey {
                name: KeyName {
                    issuer: "t".into(),
                    key: "k".into(),
                },
                fingerprint: "f".into(),
            }),
            mode: AcquireMode::Once,
        };
        let is_read =
            |op: Box<AcquireOp>| BatchRequest::from_operations(&[Operation::Acquire(op)]).has_bound_keys;
        assert_eq!(
            [0, 1, 2].map(|number| is_read(op.attempt(number))),
            [false, true, true]
        );
        let unkeyed = AcquireOp { key: None, ..op };
        assert!(!is_read(unkeyed.attempt(1)));
    }
}
