//! Ids of leases and waiters: UUIDs version 7. Time and random bytes are arguments.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::hex;

/// Offset of each byte's digits; the hyphens are between them.
const PAIRS: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// The highest random bits, below the version, may hold the index of a shard.
const SHARD_BITS_END: u32 = 76;
/// Of 74 random bits, at least 68 stay random.
pub const SHARD_BITS_MAX: u32 = 6;

/// Identifies one acquisition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(u128);

impl LeaseId {
    /// From milliseconds since 1970 and ten random bytes (RFC 9562, section 5.7).
    pub fn from_parts(unix_ms: i64, random: [u8; 10]) -> Self {
        let ms = u128::from(unix_ms.cast_unsigned() & 0xFFFF_FFFF_FFFF);
        let mut bits = 0_u128;
        for byte in random {
            bits = bits << 8 | u128::from(byte);
        }
        let high = (bits >> 62) & 0xFFF;
        let low = bits & 0x3FFF_FFFF_FFFF_FFFF;
        Self(ms << 80 | 7 << 76 | high << 64 | 0b10 << 62 | low)
    }

    /// The id with its highest `bits` random bits replaced by the index of a shard, which must be below 2^`bits`.
    #[must_use]
    pub fn with_shard(self, shard: u32, bits: u32) -> Self {
        debug_assert!(bits <= SHARD_BITS_MAX && shard < 1 << bits);
        let at = SHARD_BITS_END - bits;
        let mask = ((1_u128 << bits) - 1) << at;
        Self(self.0 & !mask | (u128::from(shard) << at) & mask)
    }

    /// Index of the shard in an id of a store with 2^`bits` shards. An id that the store did not make has one too.
    pub fn shard(self, bits: u32) -> u32 {
        debug_assert!(bits <= SHARD_BITS_MAX);
        let index = (self.0 >> (SHARD_BITS_END - bits)) & ((1 << bits) - 1);
        u32::try_from(index).unwrap_or(0)
    }

    fn digits(self) -> [u8; 36] {
        let mut digits = [b'-'; 36];
        for (place, byte) in PAIRS.into_iter().zip(self.0.to_be_bytes()) {
            digits[place..place + 2].copy_from_slice(&hex::byte_digits(byte));
        }
        digits
    }

    /// Accepts only the hyphenated form in lower case.
    pub fn parse(text: &str) -> Option<Self> {
        let digits: &[u8; 36] = text.as_bytes().try_into().ok()?;
        if HYPHENS.iter().any(|place| digits[*place] != b'-') {
            return None;
        }
        let mut bytes = [0; 16];
        for (byte, place) in bytes.iter_mut().zip(PAIRS) {
            *byte = hex::value(digits[place])? << 4 | hex::value(digits[place + 1])?;
        }
        Some(Self(u128::from_be_bytes(bytes)))
    }
}

/// Always valid UTF-8.
fn text(digits: &[u8; 36]) -> &str {
    std::str::from_utf8(digits).unwrap_or_default()
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(text(&self.digits()))
    }
}

impl fmt::Debug for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LeaseId({self})")
    }
}

impl Serialize for LeaseId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(text(&self.digits()))
    }
}

impl<'de> Deserialize<'de> for LeaseId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not a lease id"))
    }
}
