//! The segment tree's answer.

use std::collections::BTreeMap;

use domain::segments::{PrefixChild, PrefixNode};
use serde::Serialize;
use utoipa::ToSchema;

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "PrefixNode")]
pub struct PrefixWire {
    prefix: String,
    /// Locks whose names start with the prefix.
    total: u64,
    children: Vec<ChildWire>,
    /// Locks below children that are not listed, because there are too many.
    more_locks: u64,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "PrefixChild")]
pub struct ChildWire {
    segment: String,
    prefix: String,
    locks: u64,
    waiters: u64,
    worst: &'static str,
    states: BTreeMap<&'static str, u64>,
}

impl From<PrefixNode> for PrefixWire {
    fn from(node: PrefixNode) -> Self {
        Self {
            prefix: node.prefix,
            total: node.total,
            children: node.children.into_iter().map(ChildWire::from).collect(),
            more_locks: node.more_locks,
        }
    }
}

impl From<PrefixChild> for ChildWire {
    fn from(child: PrefixChild) -> Self {
        Self {
            segment: child.segment,
            prefix: child.prefix,
            locks: child.locks,
            waiters: child.waiters,
            worst: child.worst.wire(),
            states: child
                .states
                .iter()
                .map(|(state, count)| (state.wire(), count))
                .collect(),
        }
    }
}
