//! What never changes about contenders, kept from one scan to the next: an ephemeral sequential
//! node of one parent is created once. Saves a request per contender and scan.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use domain::names::OwnerId;
use parking_lot::Mutex;

use super::node::OwnerRead;

/// Identifies a child: its parent, which incarnation of it, and the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ContenderKey(u64);

/// What a child with a sequence is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// Ephemeral; the zxid that created it.
    Contender { czxid: i64 },
    /// Not ephemeral: a node that may have locks below it.
    Folder,
}

/// Owner as in the data of one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KnownOwner {
    pub(super) version: i32,
    pub(super) owner: OwnerId,
}

/// How many owners behind the first holder of a lock a scan reads for the first time; the next scans read the others. Each takes
/// two requests, and the locks themselves must be read within the scan timeout.
const IDENTIFIED_PER_SCAN: usize = 2_000;

#[derive(Default)]
pub(super) struct ContenderCache {
    hasher: RandomState,
    entries: Mutex<Entries>,
}

/// Found in this scan, and in the one before.
#[derive(Default)]
struct Entries {
    nodes: HashMap<ContenderKey, i64>,
    nodes_before: HashMap<ContenderKey, i64>,
    owners: HashMap<ContenderKey, KnownOwner>,
    owners_before: HashMap<ContenderKey, KnownOwner>,
    /// Of contenders in a queue, as first read: clients write their data once.
    queued: HashMap<ContenderKey, OwnerRead>,
    queued_before: HashMap<ContenderKey, OwnerRead>,
    /// How many more owners this scan may read for `queued`.
    identify_left: usize,
}

/// The number of [`Known::Folder`]: no transaction has this number.
const FOLDER: i64 = -1;

impl ContenderCache {
    /// `parent_czxid`: a parent that was deleted and created again counts from 0 again.
    pub(super) fn key(&self, parent: &str, parent_czxid: i64, name: &str) -> ContenderKey {
        ContenderKey(self.hasher.hash_one((parent, parent_czxid, name)))
    }

    pub(super) fn get(&self, key: ContenderKey) -> Option<Known> {
        let mut entries = self.entries.lock();
        let czxid = match entries.nodes.get(&key) {
            Some(czxid) => *czxid,
            None => {
                let czxid = entries.nodes_before.remove(&key)?;
                entries.nodes.insert(key, czxid);
                czxid
            }
        };
        Some(match czxid {
            FOLDER => Known::Folder,
            czxid => Known::Contender { czxid },
        })
    }

    pub(super) fn insert(&self, key: ContenderKey, known: Known) {
        let czxid = match known {
            Known::Contender { czxid } => czxid,
            Known::Folder => FOLDER,
        };
        self.entries.lock().nodes.insert(key, czxid);
    }

    pub(super) fn owner(&self, key: ContenderKey) -> Option<KnownOwner> {
        let mut entries = self.entries.lock();
        if let Some(owner) = entries.owners.get(&key) {
            return Some(owner.clone());
        }
        let owner = entries.owners_before.remove(&key)?;
        entries.owners.insert(key, owner.clone());
        Some(owner)
    }

    pub(super) fn insert_owner(&self, key: ContenderKey, owner: KnownOwner) {
        self.entries.lock().owners.insert(key, owner);
    }

    pub(super) fn queued(&self, key: ContenderKey) -> Option<OwnerRead> {
        let mut entries = self.entries.lock();
        if let Some(owner) = entries.queued.get(&key) {
            return Some(owner.clone());
        }
        let owner = entries.queued_before.remove(&key)?;
        entries.queued.insert(key, owner.clone());
        Some(owner)
    }

    /// Takes one of the reads of this scan.
    pub(super) fn may_identify(&self) -> bool {
        let mut entries = self.entries.lock();
        let left = entries.identify_left.checked_sub(1);
        entries.identify_left = left.unwrap_or(0);
        left.is_some()
    }

    pub(super) fn insert_queued(&self, key: ContenderKey, owner: OwnerRead) {
        self.entries.lock().queued.insert(key, owner);
    }

    /// A scan begins: what it does not find is forgotten with [`end_scan`](Self::end_scan).
    pub(super) fn begin_scan(&self) {
        let mut entries = self.entries.lock();
        // Left over if the scan before did not end.
        let (nodes, owners, queued) = (
            std::mem::take(&mut entries.nodes),
            std::mem::take(&mut entries.owners),
            std::mem::take(&mut entries.queued),
        );
        entries.nodes_before.extend(nodes);
        entries.owners_before.extend(owners);
        entries.queued_before.extend(queued);
        entries.identify_left = IDENTIFIED_PER_SCAN;
    }

    pub(super) fn end_scan(&self) {
        let mut entries = self.entries.lock();
        entries.nodes_before = HashMap::new();
        entries.owners_before = HashMap::new();
        entries.queued_before = HashMap::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_identifies_a_limited_number_of_waiters() {
        let cache = ContenderCache::default();
        for _ in 0..2 {
            cache.begin_scan();
            let reads = (0..=IDENTIFIED_PER_SCAN).filter(|_| cache.may_identify()).count();
            assert_eq!(reads, IDENTIFIED_PER_SCAN);
        }
    }

    #[test]
    fn what_a_scan_does_not_find_is_forgotten() {
        // Two contenders; a scan that finds one of them; another incarnation of the parent.
        let cache = ContenderCache::default();
        let (kept, gone) = (
            cache.key("/a", 1, "lock-0000000001"),
            cache.key("/a", 1, "lock-0000000002"),
        );
        assert_ne!(kept, cache.key("/a", 2, "lock-0000000001"));
        cache.insert(kept, Known::Contender { czxid: 7 });
        cache.insert(gone, Known::Folder);
        cache.begin_scan();
        assert_eq!(cache.get(kept), Some(Known::Contender { czxid: 7 }));
        cache.end_scan();
        assert_eq!(cache.get(kept), Some(Known::Contender { czxid: 7 }));
        assert_eq!(cache.get(gone), None);
    }
}
