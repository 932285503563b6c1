//! The segment tree's answer.

use std::collections::BTreeMap;

use domain::name_tree::{PrefixChild, PrefixNode};
use serde::Serialize;
use utoipa::ToSchema;

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "PrefixNode")]
pub struct PrefixDto {
    prefix: String,
    /// Locks whose names start with the prefix.
    total: u64,
    children: Vec<ChildDto>,
    /// Locks below children that are not listed, because there are too many.
    more_locks: u64,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "PrefixChild")]
pub struct ChildDto {
    segment: String,
    prefix: String,
    locks: u64,
    waiters: u64,
    worst: &'static str,
    states: BTreeMap<&'static str, u64>,
}

impl From<PrefixNode> for PrefixDto {
    fn from(node: PrefixNode) -> Self {
        Self {
            prefix: node.prefix,
            total: node.total,
            children: node.children.into_iter().map(ChildDto::from).collect(),
            more_locks: node.more_locks,
        }
    }
}

impl From<PrefixChild> for ChildDto {
    fn from(child: PrefixChild) -> Self {
        Self {
            segment: child.segment,
            prefix: child.prefix,
            locks: child.locks,
            waiters: child.waiters,
            worst: child.worst.as_str(),
            states: child
                .states
                .iter()
                .map(|(state, count)| (state.as_str(), count))
                .collect(),
        }
    }
}
