//! Names of the keys below the prefix of the store.
//!
//! | Key | Value |
//! |---|---|
//! | `free/RESOURCE`, `held/RESOURCE` | counter and newest lease; `held/` while that lease has no recorded end |
//! | `leases/ID` | the resource of a lease, or the ended lease |
//! | `queue/RESOURCE NUL ID` | a waiter, on the etcd lease of its replica |
//! | `keys/PRINCIPAL NUL KEY` | an idempotency key |
//! | `rejections/TIME-ID` | a fencing rejection |
//! | `replicas/ID` | a live replica, on its etcd lease |
//! | `meta/…` | identity and epoch, the store's clock, the replica that wrote last, the janitor, the mark of an unfinished move |
//!
//! A resource has no NUL, so its queue is a range of its own. Order of names is order of keys.

use domain::lease::LeaseId;
use domain::names::Resource;

use crate::operation::KeyName;

const NAMESPACES: [&str; 8] = [
    "free/",
    "held/",
    "keys/",
    "leases/",
    "meta/",
    "queue/",
    "rejections/",
    "replicas/",
];

/// Times in keys have 15 digits.
pub(super) const MS_MAX: i64 = 999_999_999_999_999;

#[derive(Debug, Clone)]
pub(super) struct Keys {
    prefix: String,
}

/// A half-open range of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyRange {
    pub(super) from: Vec<u8>,
    pub(super) to: Vec<u8>,
}

impl Keys {
    pub(super) fn new(prefix: String) -> Self {
        Self { prefix }
    }

    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    fn key(&self, namespace: &str, name: &[u8]) -> Vec<u8> {
        [self.prefix.as_bytes(), namespace.as_bytes(), name].concat()
    }

    fn namespace(&self, namespace: &str) -> KeyRange {
        let from = self.key(namespace, b"");
        let to = successor(&from);
        KeyRange { from, to }
    }

    pub(super) fn free(&self, resource: &Resource) -> Vec<u8> {
        self.key("free/", resource.as_bytes())
    }

    pub(super) fn held(&self, resource: &Resource) -> Vec<u8> {
        self.key("held/", resource.as_bytes())
    }

    pub(super) fn all_free(&self) -> KeyRange {
        self.namespace("free/")
    }

    pub(super) fn all_held(&self) -> KeyRange {
        self.namespace("held/")
    }

    /// Held resources from a name (inclusive) to a name (exclusive; `None`: the last).
    pub(super) fn held_from(&self, from: &[u8], to: Option<&[u8]>) -> KeyRange {
        KeyRange {
            from: self.key("held/", from),
            to: to.map_or_else(|| self.all_held().to, |to| self.key("held/", to)),
        }
    }

    pub(super) fn lease(&self, id: LeaseId) -> Vec<u8> {
        self.key("leases/", id.to_string().as_bytes())
    }

    pub(super) fn all_leases(&self) -> KeyRange {
        self.namespace("leases/")
    }

    pub(super) fn idempotency(&self, name: &KeyName) -> Vec<u8> {
        self.key("keys/", format!("{}\0{}", name.issuer, name.key).as_bytes())
    }

    pub(super) fn all_idempotency(&self) -> KeyRange {
        self.namespace("keys/")
    }

    pub(super) fn waiter(&self, resource: &Resource, waiter: LeaseId) -> Vec<u8> {
        let name = [resource.as_bytes(), b"\0", waiter.to_string().as_bytes()].concat();
        self.key("queue/", &name)
    }

    /// The queue of one resource.
    pub(super) fn queue(&self, resource: &Resource) -> KeyRange {
        self.queues(resource, resource)
    }

    /// The queues of all resources between two, inclusive.
    pub(super) fn queues(&self, first: &Resource, last: &Resource) -> KeyRange {
        KeyRange {
            from: self.key("queue/", &[first.as_bytes(), b"\0"].concat()),
            to: self.key("queue/", &[last.as_bytes(), b"\x01"].concat()),
        }
    }

    /// Key of a rejection recorded at this time of the store.
    pub(super) fn rejection(&self, recorded_ms: i64, id: &str) -> Vec<u8> {
        self.key(
            "rejections/",
            format!("{:015}-{id}", recorded_ms.clamp(0, MS_MAX)).as_bytes(),
        )
    }

    /// Rejections recorded between two times, the second exclusive.
    pub(super) fn rejections_between(&self, from_ms: i64, until_ms: i64) -> KeyRange {
        let at = |ms: i64| self.key("rejections/", format!("{:015}", ms.clamp(0, MS_MAX)).as_bytes());
        KeyRange {
            from: at(from_ms),
            to: at(until_ms),
        }
    }

    pub(super) fn replica(&self, id: &str) -> Vec<u8> {
        self.key("replicas/", id.as_bytes())
    }

    pub(super) fn all_replicas(&self) -> KeyRange {
        self.namespace("replicas/")
    }

    /// Identity, epoch and token floor. Rewritten when the epoch is raised, and at no other time.
    pub(super) fn identity(&self) -> Vec<u8> {
        self.key("meta/", b"identity")
    }

    /// The replica that wrote last. Written by every transaction: etcd 3.4 counts no nested transaction against its quota,
    /// and would accept all of them when it is exhausted.
    pub(super) fn writer(&self) -> Vec<u8> {
        self.key("meta/", b"writer")
    }

    pub(super) fn clock(&self) -> Vec<u8> {
        self.key("meta/", b"clock")
    }

    /// Present while leases are moved here and not all have arrived.
    pub(super) fn unfinished_move(&self) -> Vec<u8> {
        self.key("meta/", b"move")
    }

    /// Present while one replica deletes what is past its retention.
    pub(super) fn janitor(&self) -> Vec<u8> {
        self.key("meta/", b"janitor")
    }

    /// Ranges below the prefix that no key of ours is in.
    pub(super) fn gaps(&self) -> Vec<KeyRange> {
        let mut from = self.prefix.clone().into_bytes();
        let mut gaps = Vec::with_capacity(NAMESPACES.len() + 1);
        for namespace in NAMESPACES {
            let KeyRange { from: begin, to: end } = self.namespace(namespace);
            gaps.push(KeyRange { from, to: begin });
            from = end;
        }
        let to = successor(self.prefix.as_bytes());
        gaps.push(KeyRange { from, to });
        gaps
    }

    /// The resource of a changed key of a state or of a queue.
    pub(super) fn resource_of(&self, key: &[u8]) -> Option<Resource> {
        let rest = key.strip_prefix(self.prefix.as_bytes())?;
        if let Some(name) = rest
            .strip_prefix(b"held/")
            .or_else(|| rest.strip_prefix(b"free/"))
        {
            return Some(Resource::from_bytes(name));
        }
        self.waiter_of(key).map(|(resource, _)| resource)
    }

    /// The resource and the id of a key of a queue.
    pub(super) fn waiter_of(&self, key: &[u8]) -> Option<(Resource, LeaseId)> {
        let rest = key.strip_prefix(self.prefix.as_bytes())?;
        let name = rest.strip_prefix(b"queue/")?;
        let end = name.iter().rposition(|byte| *byte == 0)?;
        let id = std::str::from_utf8(&name[end + 1..]).ok()?;
        Some((Resource::from_bytes(&name[..end]), LeaseId::parse(id)?))
    }

    /// The part of a key after its namespace.
    pub(super) fn name<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        let rest = key.strip_prefix(self.prefix.as_bytes()).unwrap_or(key);
        match rest.iter().position(|byte| *byte == b'/') {
            Some(slash) => &rest[slash + 1..],
            None => rest,
        }
    }
}

/// The first key after all that begin with this one, which ends with a byte below 255.
fn successor(key: &[u8]) -> Vec<u8> {
    let mut next = key.to_vec();
    if let Some(last) = next.last_mut() {
        *last += 1;
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        Keys::new("/leasehold/".to_owned())
    }

    #[test]
    fn a_queue_is_no_part_of_the_queue_of_a_longer_name() {
        let (short, long) = (Resource::from("a"), Resource::from("a/b"));
        let id = LeaseId::from_parts(1, [1; 10]);
        let queue = keys().queue(&short);
        let waiter = |resource| keys().waiter(resource, id);
        assert!(queue.from <= waiter(&short) && waiter(&short) < queue.to);
        assert!(waiter(&long) >= queue.to);
        assert_eq!(keys().resource_of(&waiter(&long)), Some(long));
    }

    #[test]
    fn keys_of_the_store_are_in_no_gap() {
        let resource = Resource::from("tenant:job/1");
        let store_keys = [
            keys().free(&resource),
            keys().held(&resource),
            keys().lease(LeaseId::from_parts(1, [1; 10])),
            keys().identity(),
            keys().rejection(5, "x"),
            keys().replica("r"),
        ];
        for gap in keys().gaps() {
            assert!(gap.from <= gap.to);
            assert!(store_keys.iter().all(|key| *key < gap.from || *key >= gap.to));
        }
        let foreign = b"/leasehold/locks/a".to_vec();
        assert!(
            keys()
                .gaps()
                .iter()
                .any(|gap| gap.from <= foreign && foreign < gap.to)
        );
    }
}
