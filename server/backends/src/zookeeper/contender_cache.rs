//! Cache of the properties of contenders that never change, from one scan to the next: an ephemeral sequential node of one parent
//! is created once. Saves a request per contender and scan.
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use parking_lot::Mutex;

use super::node::OwnerRead;
use super::packed_children::PackedChildren;

/// Identifies a parent: its path, and which incarnation of it, because one that was deleted and
/// created again counts from 0 again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct NodeKey(u64);

/// Identifies a child of one parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct NameKey(pub(super) u64);

/// Kind of a child with a sequence.
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
    pub(super) read: OwnerRead,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KnownChild {
    pub(super) known: Known,
    pub(super) owner: Option<KnownOwner>,
}

/// Children of one node whose names have a sequence.
pub(super) type KnownChildren = HashMap<NameKey, KnownChild>;

/// New owners that one scan reads behind the first holders of locks; the next scans read the others. Each takes
/// two requests, and the locks themselves must be read within the scan timeout.
const IDENTIFIED_PER_SCAN: usize = 2_000;

#[derive(Default)]
pub(super) struct ContenderCache {
    hasher: RandomState,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    /// Found in this scan, or since the last one.
    found: HashMap<NodeKey, PackedChildren>,
    /// Entries of the scan before, sorted; empty once replaced.
    before: Box<[(NodeKey, PackedChildren)]>,
    /// How many more owners of contenders in a queue this scan may read.
    identify_left: usize,
}

impl Entries {
    fn place(&self, node: NodeKey) -> Option<usize> {
        self.before.binary_search_by_key(&node, |(key, _)| *key).ok()
    }
}

impl ContenderCache {
    fn node(&self, path: &str, czxid: i64) -> NodeKey {
        NodeKey(self.hasher.hash_one((path, czxid)))
    }

    pub(super) fn name(&self, name: &str) -> NameKey {
        NameKey(self.hasher.hash_one(name))
    }

    pub(super) fn reading(&self, path: &str, czxid: i64) -> NodeReading<'_> {
        let node = self.node(path, czxid);
        NodeReading {
            cache: self,
            node,
            before: self.get(node),
            children: KnownChildren::new(),
            is_complete: false,
        }
    }

    fn get(&self, node: NodeKey) -> KnownChildren {
        let entries = self.entries.lock();
        let packed = entries.found.get(&node).or_else(|| {
            let (_, packed) = entries.before.get(entries.place(node)?)?;
            Some(packed)
        });
        packed.map(PackedChildren::unpack).unwrap_or_default()
    }

    /// Replaces what was known of a node.
    fn put(&self, node: NodeKey, children: KnownChildren) {
        let packed = (!children.is_empty()).then(|| PackedChildren::pack(children));
        let mut entries = self.entries.lock();
        let place = entries.place(node);
        if let Some((_, before)) = place.and_then(|place| entries.before.get_mut(place)) {
            *before = PackedChildren::default();
        }
        match packed {
            Some(packed) => entries.found.insert(node, packed),
            None => entries.found.remove(&node),
        };
    }

    /// Takes one of the reads of this scan.
    pub(super) fn may_identify(&self) -> bool {
        let mut entries = self.entries.lock();
        let left = entries.identify_left.checked_sub(1);
        entries.identify_left = left.unwrap_or(0);
        left.is_some()
    }

    /// A scan begins: what it does not find is forgotten with [`end_scan`](Self::end_scan).
    pub(super) fn begin_scan(&self) {
        let mut entries = self.entries.lock();
        // Found since the last scan, or left over if that did not end: newer than what was before.
        let found = std::mem::take(&mut entries.found);
        let before = std::mem::take(&mut entries.before);
        let all = found.into_iter().chain(before);
        entries.before = sorted(all.filter(|(_, packed)| !packed.is_empty()));
        entries.identify_left = IDENTIFIED_PER_SCAN;
    }

    pub(super) fn end_scan(&self) {
        let mut entries = self.entries.lock();
        let found = std::mem::take(&mut entries.found);
        entries.before = sorted(found.into_iter());
    }
}

/// A reading of one node. What it finds is known afterwards, also if it fails or is given up in the middle of a long queue.
pub(super) struct NodeReading<'a> {
    cache: &'a ContenderCache,
    node: NodeKey,
    /// As of the reading before.
    pub(super) before: KnownChildren,
    pub(super) children: KnownChildren,
    /// Children that it did not find are forgotten.
    pub(super) is_complete: bool,
}

impl Drop for NodeReading<'_> {
    fn drop(&mut self) {
        let mut children = std::mem::take(&mut self.children);
        if !self.is_complete {
            for (name, child) in std::mem::take(&mut self.before) {
                children.entry(name).or_insert(child);
            }
        }
        self.cache.put(self.node, children);
    }
}

/// If a key occurs twice, the first entry is kept.
fn sorted(all: impl Iterator<Item = (NodeKey, PackedChildren)>) -> Box<[(NodeKey, PackedChildren)]> {
    let mut all: Vec<(NodeKey, PackedChildren)> = all.collect();
    all.sort_by_key(|(key, _)| *key);
    all.dedup_by_key(|(key, _)| *key);
    all.into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contender(czxid: i64) -> KnownChild {
        KnownChild {
            known: Known::Contender { czxid },
            owner: None,
        }
    }

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
    fn a_reading_that_is_given_up_forgets_nothing() {
        let cache = ContenderCache::default();
        let found = |czxid: i64, is_complete| {
            let mut reading = cache.reading("/a", 1);
            let name = cache.name(&czxid.to_string());
            reading.children.insert(name, contender(czxid));
            reading.is_complete = is_complete;
        };
        found(1, true);
        found(2, false);
        assert_eq!(cache.get(cache.node("/a", 1)).len(), 2);
        found(3, true);
        assert_eq!(cache.get(cache.node("/a", 1)).len(), 1);
        assert_ne!(cache.node("/a", 1), cache.node("/a", 2), "another incarnation");
    }

    #[test]
    fn a_node_that_a_scan_does_not_find_is_forgotten() {
        // Two nodes; a scan that finds one of them; one that did not end; a reading between scans.
        let cache = ContenderCache::default();
        let (present, absent) = (cache.node("/kept", 1), cache.node("/gone", 1));
        let name = cache.name("lock-0000000001");
        let children = |czxid| KnownChildren::from([(name, contender(czxid))]);
        cache.put(present, children(1));
        cache.put(absent, children(2));
        cache.begin_scan();
        let read = cache.get(present);
        cache.put(present, read);
        cache.begin_scan();
        let read = cache.get(present);
        assert_eq!(read, children(1));
        cache.put(present, read);
        cache.end_scan();
        assert!(cache.get(absent).is_empty());
        cache.put(present, children(3));
        cache.begin_scan();
        assert_eq!(cache.get(present), children(3), "the newer one");
    }
}
