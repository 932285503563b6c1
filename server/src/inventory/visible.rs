//! Answers for somebody who may see a part: counts are of that part, as if nothing else were there.
//!
//! These read every name in question. Whoever may see everything is answered from the blocks' sums instead.

use std::collections::BTreeMap;

use domain::access::Visible;
use domain::backend::BackendView;
use domain::lease::Scope;
use domain::segments::segment_len;

use super::Inventory;
use super::entry::Entry;
use super::order::Sums;
use super::shard::Shard;
use super::tree::Child;
use crate::clock::Now;

impl Inventory {
    /// Every backend on which something may be seen, with the counts of that.
    pub fn backends_visible(&self, visible: &Visible, now: Now) -> Vec<BackendView> {
        let mut views = self.backends(now);
        if visible.is_everything() {
            return views;
        }
        views.retain(|view| !visible.on(&view.name).is_nothing());
        let limit = |view: BackendView| {
            let scope = visible.on(&view.name);
            if scope.is_everything() {
                return view;
            }
            // A backend that left the configuration meanwhile has no locks to count.
            let sums = self
                .slot(&view.name)
                .map_or_else(Sums::default, |slot| slot.read().shard.visible_sums(b"", &scope));
            let needing_attention = if view.status.blinds_rows() {
                0
            } else {
                sums.states.needing_attention()
            };
            view.limited(sums.states.total(), sums.waiters, needing_attention)
        };
        views.into_iter().map(limit).collect()
    }
}

impl Shard {
    fn visible_entries<'a>(&'a self, prefix: &[u8], scope: &'a Scope) -> impl Iterator<Item = &'a Entry> {
        let range = self.order.prefix_range(prefix, &self.slab);
        let ids: Vec<_> = self.order.ids(&range).collect();
        ids.into_iter()
            .filter_map(|id| self.slab.get(id))
            .filter(|entry| scope.covers_bytes(&entry.name))
    }

    fn visible_sums(&self, prefix: &[u8], scope: &Scope) -> Sums {
        let mut sums = Sums::default();
        self.visible_entries(prefix, scope)
            .for_each(|entry| sums.lock(entry));
        sums
    }

    /// Sums and children of what begins with `wanted`; the children are cut behind `node_len` and one more segment.
    pub(super) fn visible_children(
        &self,
        wanted: &[u8],
        node_len: usize,
        scope: &Scope,
    ) -> (Sums, Vec<Child>) {
        let mut all = Sums::default();
        let mut children: BTreeMap<Vec<u8>, Child> = BTreeMap::new();
        for entry in self.visible_entries(wanted, scope) {
            all.lock(entry);
            let end = node_len + segment_len(&entry.name, node_len);
            let child = children
                .entry(entry.name[..end].to_vec())
                .or_insert_with_key(|prefix| Child {
                    prefix: prefix.clone(),
                    sums: Sums::default(),
                    is_leaf: false,
                });
            child.sums.lock(entry);
            child.is_leaf |= entry.name.len() == end;
        }
        (all, children.into_values().collect())
    }
}
