//! A batch by resource: which operations share a transaction, and which transactions wait for others.

use std::collections::HashMap;

use domain::lease::LeaseId;
use domain::names::Resource;

use super::writes::RESOURCE_OPERATIONS_MAX;
use crate::operation::{KeyName, Operation};

/// Operations on one resource, in order.
pub(super) struct ResourceGroup<'a> {
    pub(super) resource: Resource,
    pub(super) positions: Vec<usize>,
    pub(super) operations: Vec<&'a Operation>,
}

/// Groups operations by resource, in rounds that are applied one after the other. Three kinds are in different rounds: operations
/// with one idempotency key on two resources, so that the first binds the key; operations on one resource beyond the limit of a
/// transaction; operations of one waiter, which may leave and join again. Operations on an unknown lease are left out.
pub(super) fn plan_transactions<'a>(
    operations: &'a [Operation],
    lease_resources: &HashMap<LeaseId, Resource>,
) -> Vec<Vec<ResourceGroup<'a>>> {
    let mut rounds: Vec<Vec<ResourceGroup<'a>>> = Vec::new();
    let mut resources: HashMap<Resource, (usize, usize)> = HashMap::new();
    let mut keys: HashMap<&KeyName, (Resource, usize)> = HashMap::new();
    let mut waiters: HashMap<LeaseId, usize> = HashMap::new();
    // A lease that an earlier operation of the batch may grant is not known yet.
    let granted: HashMap<LeaseId, &Resource> = operations
        .iter()
        .filter_map(|operation| match operation {
            Operation::Acquire(op) => Some((op.id, &op.resource)),
            _ => None,
        })
        .collect();
    // Claims of keys share transactions, under a name that no resource has.
    let claims = Resource::from("");
    for (position, operation) in operations.iter().enumerate() {
        let Some(resource) = resource_of(operation, lease_resources, (&granted, &claims)) else {
            continue;
        };
        let last = resources.get(resource).copied();
        let key = key_of(operation);
        let after_key =
            key.and_then(|key| keys.get(key)).map_or(
                0,
                |(other, round)| {
                    if other == resource { *round } else { round + 1 }
                },
            );
        let is_full =
            |(round, at): (usize, usize)| rounds[round][at].operations.len() >= RESOURCE_OPERATIONS_MAX;
        let after_full = last.map_or(0, |last| last.0 + usize::from(is_full(last)));
        let waiter = waiter_of(operation);
        let after_waiter = waiter
            .and_then(|id| waiters.get(&id))
            .map_or(0, |round| round + 1);
        let round = after_full.max(after_key).max(after_waiter);
        if rounds.len() <= round {
            rounds.resize_with(round + 1, Vec::new);
        }
        let groups = &mut rounds[round];
        let at = last
            .filter(|(number, _)| *number == round)
            .map_or(groups.len(), |(_, at)| at);
        if at == groups.len() {
            groups.push(ResourceGroup {
                resource: resource.clone(),
                positions: Vec::new(),
                operations: Vec::new(),
            });
        }
        groups[at].positions.push(position);
        groups[at].operations.push(operation);
        resources.insert(resource.clone(), (round, at));
        if let Some(key) = key {
            keys.insert(key, (resource.clone(), round));
        }
        if let Some(waiter) = waiter {
            waiters.insert(waiter, round);
        }
    }
    rounds
}

fn resource_of<'a>(
    operation: &'a Operation,
    lease_resources: &'a HashMap<LeaseId, Resource>,
    (granted, claims): (&HashMap<LeaseId, &'a Resource>, &'a Resource),
) -> Option<&'a Resource> {
    match operation {
        Operation::Acquire(op) => Some(&op.resource),
        Operation::Expire { resource } | Operation::Leave { resource, .. } => Some(resource),
        Operation::Reject(rejection) => Some(&rejection.resource),
        Operation::ClaimKey(_) => Some(claims),
        Operation::Renew { lease, .. }
        | Operation::Release { lease, .. }
        | Operation::Revoke { lease, .. } => {
            lease_resources.get(lease).or_else(|| granted.get(lease).copied())
        }
    }
}

fn key_of(operation: &Operation) -> Option<&KeyName> {
    match operation {
        Operation::Acquire(op) => op.key.as_ref().map(|key| &key.name),
        Operation::Release { unbind, .. } => unbind.as_ref(),
        Operation::ClaimKey(key) => Some(&key.name),
        _ => None,
    }
}

fn waiter_of(operation: &Operation) -> Option<LeaseId> {
    match operation {
        Operation::Acquire(op) if op.mode.waits() => Some(op.id),
        Operation::Leave { waiter, .. } => Some(*waiter),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use domain::lease::{Metadata, Ttl};
    use domain::names::OwnerId;

    use super::*;
    use crate::operation::{AcquireMode, AcquireOp, IdempotencyKey};

    fn acquire(resource: &str, key: Option<&str>) -> Operation {
        Operation::Acquire(Box::new(AcquireOp {
            resource: Resource::from(resource),
            id: LeaseId::from_parts(1, [1; 10]),
            owner: OwnerId::new("o"),
            issuer: Arc::from("t"),
            ttl: Ttl::parse(10, 3_600).unwrap(),
            metadata: Metadata::default(),
            key: key.map(|key| IdempotencyKey {
                name: KeyName {
                    issuer: Arc::from("t"),
                    key: Arc::from(key),
                },
                fingerprint: Arc::from("f"),
            }),
            mode: AcquireMode::Once,
        }))
    }

    #[test]
    fn operations_with_one_key_on_two_resources_are_in_order() {
        let batch = [
            acquire("a", Some("k")),
            acquire("b", Some("k")),
            acquire("a", None),
            acquire("b", None),
            acquire("c", None),
            acquire("a", Some("k")),
        ];
        let rounds = plan_transactions(&batch, &HashMap::new());
        let positions: Vec<Vec<Vec<usize>>> = rounds
            .iter()
            .map(|groups| groups.iter().map(|group| group.positions.clone()).collect())
            .collect();
        assert_eq!(
            positions,
            [vec![vec![0, 2], vec![4]], vec![vec![1, 3]], vec![vec![5]]]
        );
    }

    #[test]
    fn a_full_transaction_is_followed_by_another() {
        let batch = vec![acquire("a", None); RESOURCE_OPERATIONS_MAX + 1];
        let rounds = plan_transactions(&batch, &HashMap::new());
        let sizes: Vec<usize> = rounds.iter().map(|groups| groups[0].operations.len()).collect();
        assert_eq!(sizes, [RESOURCE_OPERATIONS_MAX, 1]);
    }
}
