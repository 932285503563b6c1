//! Which shard a name belongs to: a function of the name and the number of shards, frozen with the first lease.
//!
//! The index is the first bits of the SHA-256 (FIPS 180-4) of the name, so that it depends on no version of a library,
//! no platform and no process. [`HASH`] names the function; every shard stores it. A resource hashes as its bytes; an
//! idempotency key as its issuer and key, each after its length, under a prefix that no resource has.

use std::fmt;

use domain::lease::LeaseId;
use domain::names::Resource;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::operation::KeyName;

/// Name of the function. Another function needs another name: the shards of a store refuse it.
pub(super) const HASH: &str = "sha256-1";
/// No resource holds U+0000.
const KEY_PREFIX: &[u8] = b"\0key";

/// Position of a shard in `lease.store`, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ShardIndex(u32);

impl ShardIndex {
    pub fn new(index: u32) -> Self {
        Self(index)
    }

    pub fn get(self) -> u32 {
        self.0
    }

    pub(crate) fn number(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl fmt::Display for ShardIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The number of shards, a power of two, and what follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardMap {
    /// Binary logarithm of the number of shards.
    bits: u32,
}

impl ShardMap {
    /// `None` unless `shards` is a power of two, at most 64.
    pub fn new(shards: usize) -> Option<Self> {
        let bits = shards.is_power_of_two().then(|| shards.trailing_zeros())?;
        (bits <= domain::lease::SHARD_BITS_MAX).then_some(Self { bits })
    }

    pub fn shards(self) -> u32 {
        1 << self.bits
    }

    pub fn of_resource(self, resource: &Resource) -> ShardIndex {
        self.hashed(|hasher| hasher.update(resource.as_bytes()))
    }

    pub fn of_lease(self, id: LeaseId) -> ShardIndex {
        ShardIndex(id.shard(self.bits))
    }

    pub(crate) fn of_key(self, key: &KeyName) -> ShardIndex {
        self.hashed(|hasher| {
            hasher.update(KEY_PREFIX);
            for part in [&key.issuer, &key.key] {
                hasher.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
                hasher.update(part.as_bytes());
            }
        })
    }

    /// The id with its shard in it.
    pub(crate) fn mark(self, id: LeaseId, shard: ShardIndex) -> LeaseId {
        id.with_shard(shard.0, self.bits)
    }

    fn hashed(self, name: impl FnOnce(&mut Sha256)) -> ShardIndex {
        if self.bits == 0 {
            return ShardIndex(0);
        }
        let mut hasher = Sha256::new();
        name(&mut hasher);
        let first = u32::from(hasher.finalize()[0]);
        ShardIndex(first >> (u8::BITS - self.bits))
    }
}

const _: () = assert!(domain::lease::SHARD_BITS_MAX <= u8::BITS);

#[cfg(test)]
mod tests;
