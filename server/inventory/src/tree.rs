//! One shard's part of the name tree: the children of a prefix, found by skipping from segment
//! to segment.

use std::ops::Range;

use domain::name_tree::segment_len;
use domain::tick::Tick;

use super::name_index::{Aggregates, IndexEntry};
use super::shard::Shard;

/// One child segment, before shards are merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Child {
    pub(super) prefix: Vec<u8>,
    pub(super) sums: Aggregates,
    /// A lock's name ends exactly here.
    pub(super) is_leaf: bool,
}

impl Shard {
    /// Children of the node formed by the first `node_len` bytes of every name in `ranges`, in
    /// order; at most `children_max` of them. The ranges are sorted and disjoint.
    pub(super) fn children(
        &self,
        ranges: &[Range<IndexEntry>],
        node_len: usize,
        children_max: usize,
        now: Tick,
    ) -> Vec<Child> {
        let mut children: Vec<Child> = Vec::new();
        for range in ranges {
            self.children_in(range, node_len, (children_max, now), &mut children);
        }
        children
    }

    fn children_in(
        &self,
        range: &Range<IndexEntry>,
        node_len: usize,
        (children_max, now): (usize, Tick),
        children: &mut Vec<Child>,
    ) {
        let mut at = range.start;
        while at < range.end && children.len() < children_max {
            let Some(first) = self.order.slice(at.block, &(at..range.end)).first() else {
                break;
            };
            let name = self.slab.name(*first);
            let child = &name[..node_len + segment_len(name, node_len)];
            // A name without a further segment is a leaf; the node of the same bytes may have
            // more below it only if it ends with a separator, and then both are one row of the
            // tree.
            let below = self.order.prefix_range(child, &self.slab);
            let is_leaf = name.len() == child.len();
            let ends_open = !child.last().is_some_and(|b| domain::name_tree::is_separator(*b));
            let mut part = at..below.end.min(range.end);
            if ends_open {
                // `a` and `ab` share a beginning but no segment.
                part.end = part.end.min(self.order.bound(|other| other <= child, &self.slab));
            }
            let sums = self.order.sums(&part, &self.slab, now);
            match children.last_mut() {
                // The previous range ended within the same child.
                Some(last) if last.prefix == child => {
                    last.sums.add(&sums);
                    last.is_leaf |= is_leaf;
                }
                _ => children.push(Child {
                    sums,
                    prefix: child.to_vec(),
                    is_leaf,
                }),
            }
            at = part.end;
        }
    }
}
