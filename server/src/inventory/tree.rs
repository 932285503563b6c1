//! One shard's share of the segment tree: the children of a prefix, found by skipping from segment to segment.

use domain::segments::segment_len;

use super::order::Sums;
use super::shard::Shard;

/// One child segment, before shards are merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Child {
    pub(super) prefix: Vec<u8>,
    pub(super) sums: Sums,
    /// Some lock's name ends exactly here.
    pub(super) is_leaf: bool,
}

impl Shard {
    /// Children of `prefix`, which ends on a segment boundary, in order; at most `most` of them.
    pub(super) fn children(&self, prefix: &[u8], most: usize) -> Vec<Child> {
        let range = self.order.prefix_range(prefix, &self.slab);
        let mut children = Vec::new();
        let mut at = range.start;
        while at < range.end && children.len() < most {
            let Some(first) = self.order.slice(at.block, &(at..range.end)).first() else {
                break;
            };
            let name = self.slab.name(*first);
            let child = name[..prefix.len() + segment_len(name, prefix.len())].to_vec();
            // A name without a further segment is a leaf; the node of the same bytes may still have more below it
            // only when it ends with a separator, and then both are one row of the tree.
            let below = self.order.prefix_range(&child, &self.slab);
            let is_leaf = name.len() == child.len();
            let ends_open = !child.last().is_some_and(|b| domain::segments::is_separator(*b));
            let mut part = at..below.end.min(range.end);
            if ends_open {
                // `a` and `ab` share a beginning but no segment.
                part.end = part
                    .end
                    .min(self.order.bound(|other| other <= &child[..], &self.slab));
            }
            children.push(Child {
                sums: self.order.sums(&part, &self.slab),
                prefix: child,
                is_leaf,
            });
            at = part.end;
        }
        children
    }
}
