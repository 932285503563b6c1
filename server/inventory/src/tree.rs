//! One shard's part of the name tree: the children of a prefix, found by skipping from segment
//! to segment.

use std::ops::Range;

use domain::limits::{PREFIX_CHILDREN_BYTES_MAX, PREFIX_CHILDREN_MAX};
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

/// The first children, in order.
#[derive(Debug, Default)]
struct Children {
    list: Vec<Child>,
    /// Bytes of their names.
    bytes: usize,
}

impl Children {
    fn is_full(&self) -> bool {
        self.list.len() >= PREFIX_CHILDREN_MAX || self.bytes >= PREFIX_CHILDREN_BYTES_MAX
    }
}

impl Shard {
    /// Children of the node formed by the first `node_len` bytes of every name in `ranges`, in
    /// order, as many as one response has. The ranges are sorted and disjoint.
    pub(super) fn children(&self, ranges: &[Range<IndexEntry>], node_len: usize, now: Tick) -> Vec<Child> {
        let mut children = Children::default();
        for range in ranges {
            self.children_in(range, node_len, now, &mut children);
        }
        children.list
    }

    fn children_in(&self, range: &Range<IndexEntry>, node_len: usize, now: Tick, children: &mut Children) {
        let mut at = range.start;
        while at < range.end {
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
            let is_full = children.is_full();
            match children.list.last_mut() {
                // The previous range ended within the same child.
                Some(last) if last.prefix == child => {
                    last.sums.add(&sums);
                    last.is_leaf |= is_leaf;
                }
                _ if is_full => return,
                _ => {
                    children.bytes += child.len();
                    children.list.push(Child {
                        sums,
                        prefix: child.to_vec(),
                        is_leaf,
                    });
                }
            }
            at = part.end;
        }
    }
}
