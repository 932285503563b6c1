//! Which main lane of a store serves an operation: those that name one resource go through the same one, in order.

use std::hash::{DefaultHasher, Hash, Hasher as _};

use super::operation::Operation;

/// The main lane of an operation: by resource where it names one, otherwise by lease id or key. A
/// client that names a lease has already received the answer to its acquire.
pub(super) fn route(operation: &Operation) -> u64 {
    match operation {
        Operation::Acquire(op) => hash(&op.resource),
        Operation::Expire { resource } | Operation::Leave { resource, .. } => hash(resource),
        Operation::Reject(rejection) => hash(&rejection.resource),
        Operation::ClaimKey(key) => hash(&key.name),
        Operation::Renew { lease, .. }
        | Operation::Release { lease, .. }
        | Operation::Revoke { lease, .. } => hash(lease),
    }
}

pub(super) fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
