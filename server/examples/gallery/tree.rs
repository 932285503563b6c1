//! The segment tree over the made-up rows.

use std::collections::BTreeMap;

use domain::lock::Lock;
use domain::segments::{PrefixChild, PrefixNode, segment_len};
use domain::state::{LockState, StateCounts};

use crate::canned::count;

const CHILDREN_SHOWN: usize = 40;

pub(crate) fn node(rows: &[Lock], prefix: &str) -> PrefixNode {
    let mut children: BTreeMap<String, (StateCounts, u64, bool)> = BTreeMap::new();
    let mut states = StateCounts::default();
    for lock in rows {
        let name = lock.id.resource.text();
        let Some(rest) = name.strip_prefix(prefix) else {
            continue;
        };
        let end = segment_len(rest.as_bytes(), 0);
        let Some(segment) = rest.get(..end) else { continue };
        states.add(lock.state, 1);
        let child = children.entry(segment.to_owned()).or_default();
        child.0.add(lock.state, 1);
        child.1 += lock.waiter_count.known().map_or(0, |waiters| u64::from(*waiters));
        child.2 = end == rest.len();
    }
    let mut children: Vec<PrefixChild> = children
        .into_iter()
        .map(|(segment, (states, waiters, is_leaf))| PrefixChild {
            prefix: format!("{prefix}{segment}"),
            segment,
            locks: states.total(),
            waiters,
            worst: states.worst().unwrap_or(LockState::Healthy),
            states,
            is_leaf,
        })
        .collect();
    let rest = children.split_off(children.len().min(CHILDREN_SHOWN));
    PrefixNode {
        prefix: prefix.to_owned(),
        total: states.total(),
        states,
        children,
        more_children: count(rest.len()),
        more_locks: rest.iter().map(|child| child.locks).sum(),
    }
}
