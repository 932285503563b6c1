//! Fencing tokens: numbers that only rise per resource.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Number issued with each grant. Tokens of other backends (etcd revisions, czxids) may exceed
/// 2^53, so JSON carries text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FencingToken(u64);

impl FencingToken {
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    pub const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
