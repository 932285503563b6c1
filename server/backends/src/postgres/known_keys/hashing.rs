//! How lock libraries turn a name into an advisory key.
//!
//! `hashtext` and `hashtextextended` are functions of the server and differ by its version: the
//! server computes them. All others are computed here, once, from the configured names.

use hkdf::Hkdf;
use md5::Md5;
use sha2::{Digest, Sha256};

use crate::postgres::advisory::AdvisoryKey;

/// Bytes that a key takes from a digest.
const KEY_BYTES: usize = 8;
/// Longest name that DistributedLock of .NET encodes instead of hashing it.
const ASCII_CHARS_MAX: usize = 9;

/// One key of a name, with how a library makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HashedKey {
    pub(super) key: AdvisoryKey,
    pub(super) hashing: &'static str,
}

/// A hash of 32 bits that is one half of a two-key form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HashedHalf {
    pub(super) half: i32,
    pub(super) hashing: &'static str,
}

pub(super) const HASHTEXT: &str = "hashtext";
pub(super) const HASHTEXTEXTENDED: &str = "hashtextextended with seed 0";
const CRC32: &str = "crc32 (Symfony, django-pglocks, pgqueuer)";

/// Keys of a name, except those that the server computes.
pub(super) fn keys(name: &str) -> Vec<HashedKey> {
    let bytes = name.as_bytes();
    let sha256: [u8; 32] = Sha256::digest(bytes).into();
    let sha1 = sha1_smol::Sha1::from(bytes).digest().bytes();
    let md5: [u8; 16] = Md5::digest(bytes).into();
    let blake2b: [u8; KEY_BYTES] = blake2::Blake2b::<blake2::digest::consts::U8>::digest(bytes).into();
    let crc = crc32fast::hash(bytes);
    let bigint = |key: i64, hashing| HashedKey {
        key: AdvisoryKey::One(key),
        hashing,
    };
    let int_pair = |first, second, hashing| HashedKey {
        key: AdvisoryKey::Two(first, second),
        hashing,
    };
    let mut keys = vec![
        bigint(be_i64(&sha256), "the first 8 bytes of sha256, big-endian (DBOS)"),
        bigint(
            le_i64(&sha256),
            "the first 8 bytes of sha256, little-endian (django-pglock)",
        ),
        bigint(be_i64(&sha1), "the first 8 bytes of sha1, big-endian"),
        bigint(
            le_i64(&sha1),
            "the first 8 bytes of sha1, little-endian (PALs, DistributedLock of .NET)",
        ),
        bigint(be_i64(&md5), "the first 8 bytes of md5, big-endian (GoodJob)"),
        bigint(le_i64(&md5), "the first 8 bytes of md5, little-endian"),
        bigint(be_i64(&blake2b), "blake2b of 8 bytes, big-endian"),
        bigint(
            le_i64(&blake2b),
            "blake2b of 8 bytes, little-endian (sqlalchemy-dlock)",
        ),
        bigint(i64::from(crc), CRC32),
        bigint(i64::from(fnv1_32(bytes)), "fnv-1 of 32 bits (Atlas)"),
        bigint(i64::from(java(name)), "String.hashCode of Java"),
        int_pair(
            int4(&sha256, 0),
            int4(&sha256, 4),
            "the first 8 bytes of sha256 as two integers (advisory-lock 2 of npm)",
        ),
        int_pair(
            int4(&sha256, 0),
            int4(&sha256, 1),
            "two integers of sha256 that overlap (advisory-lock 1 of npm)",
        ),
        // The second number is the gem's prefix, 0 without one.
        int_pair(gem(crc), 0, "crc32 of 31 bits (with_advisory_lock)"),
    ];
    if crc > i32::MAX.cast_unsigned() {
        keys.push(bigint(
            i64::from(crc.cast_signed()),
            "crc32 as a signed number (django-pglocks)",
        ));
    }
    keys.extend(sqlx(bytes).map(|key| bigint(key, "HKDF of sha256 (PgAdvisoryLock of sqlx)")));
    keys.extend(
        ascii(name)
            .map(|(first, second)| int_pair(first, second, "an ASCII encoding (DistributedLock of .NET)")),
    );
    keys
}

/// Halves of the two-key form, except those that the server computes.
pub(super) fn halves(name: &str) -> Vec<HashedHalf> {
    let crc = crc32fast::hash(name.as_bytes());
    let mut halves = vec![
        HashedHalf {
            half: crc.cast_signed(),
            hashing: CRC32,
        },
        HashedHalf {
            half: java(name),
            hashing: "String.hashCode of Java",
        },
    ];
    if crc > i32::MAX.cast_unsigned() {
        halves.push(HashedHalf {
            half: gem(crc),
            hashing: "crc32 of 31 bits (with_advisory_lock)",
        });
    }
    halves
}

fn first(digest: &[u8]) -> [u8; KEY_BYTES] {
    let mut bytes = [0; KEY_BYTES];
    for (to, from) in bytes.iter_mut().zip(digest) {
        *to = *from;
    }
    bytes
}

pub(super) fn be_i64(digest: &[u8]) -> i64 {
    i64::from_be_bytes(first(digest))
}

fn le_i64(digest: &[u8]) -> i64 {
    i64::from_le_bytes(first(digest))
}

/// Little-endian, from four bytes at `at`.
fn int4(digest: &[u8; 32], at: usize) -> i32 {
    i32::from_le_bytes([digest[at], digest[at + 1], digest[at + 2], digest[at + 3]])
}

/// The gem with_advisory_lock clears the sign.
const fn gem(crc: u32) -> i32 {
    (crc & 0x7fff_ffff).cast_signed()
}

fn fnv1_32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash: u32, byte| {
        hash.wrapping_mul(0x0100_0193) ^ u32::from(*byte)
    })
}

fn java(name: &str) -> i32 {
    name.encode_utf16().fold(0, |hash: i32, unit| {
        hash.wrapping_mul(31).wrapping_add(i32::from(unit))
    })
}

fn sqlx(bytes: &[u8]) -> Option<i64> {
    let mut key = [0; KEY_BYTES];
    Hkdf::<Sha256>::new(None, bytes)
        .expand(b"SQLx (Rust) Postgres advisory lock", &mut key)
        .ok()?;
    Some(i64::from_le_bytes(key))
}

/// Seven bits for each character, a zero, then ones.
fn ascii(name: &str) -> Option<(i32, i32)> {
    if name.len() > ASCII_CHARS_MAX || !name.is_ascii() {
        return None;
    }
    let bits = name
        .bytes()
        .fold(0_u64, |bits, byte| (bits << 7) | u64::from(byte))
        << 1;
    let key = (name.len()..ASCII_CHARS_MAX).fold(bits, |bits, _| (bits << 7) | 0x7f);
    let [a, b, c, d, e, f, g, h] = key.to_be_bytes();
    Some((i32::from_be_bytes([a, b, c, d]), i32::from_be_bytes([e, f, g, h])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_key(name: &str, key: AdvisoryKey, hashing: &str) {
        let keys = keys(name);
        let found = keys.iter().find(|hashed| hashed.hashing.contains(hashing));
        assert_eq!(found.unwrap().key, key, "{hashing} of {name:?}");
    }

    #[test]
    fn keys_are_those_of_the_published_libraries() {
        // Printed by the libraries themselves: django-pglock 1.8.0, PALs 0.4.0, sqlalchemy-dlock 0.9.0 (on a
        // little-endian machine), advisory-lock 2.0.0 of npm.
        let bigint = AdvisoryKey::One;
        assert_key(
            "billing-close",
            bigint(6_020_719_132_313_739_287),
            "django-pglock)",
        );
        assert_key("nightly", bigint(1_630_262_648_214_010_666), "django-pglock)");
        assert_key("billing.close", bigint(2_767_235_816_906_036_040), "PALs");
        assert_key("nightly", bigint(-6_609_291_228_350_792_459), "sqlalchemy-dlock");
        assert_key(
            "Überweisung",
            bigint(-1_023_108_036_124_490_164),
            "sqlalchemy-dlock",
        );
        let int_pair = AdvisoryKey::Two;
        assert_key(
            "billing-close",
            int_pair(-705_339_369, 1_401_807_910),
            "advisory-lock 2",
        );
        assert_key(
            "Überweisung",
            int_pair(1_900_921_434, -1_294_737_415),
            "advisory-lock 2",
        );
    }

    #[test]
    fn short_hashes_have_their_standard_values() {
        // The check value of CRC-32; FNV-1 of "go" as Go's hash/fnv has it; Java's documented "Aa" and "BB".
        assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
        assert_eq!(fnv1_32(b"go"), 1_786_192_775);
        assert_eq!((java("Aa"), java("BB"), java("")), (2_112, 2_112, 0));
        assert_key("123456789", AdvisoryKey::One(0xcbf4_3926), "Symfony");
        assert_key("123456789", AdvisoryKey::One(-873_187_034), "signed");
        assert_key("123456789", AdvisoryKey::Two(0x4bf4_3926, 0), "31 bits");
    }

    #[test]
    fn short_ascii_names_are_encoded_as_in_dotnet() {
        // By its rule: 'a' is 97, then a zero, then 56 ones; after nine characters only the zero follows.
        assert_eq!(ascii("a"), Some((-1_023_410_177, -1)));
        assert_eq!(ascii(""), Some((i32::MAX, -1)));
        assert_eq!(ascii("123456789"), Some((1_657_379_654, -1_382_303_630)));
        assert_eq!((ascii("1234567890"), ascii("ü")), (None, None));
    }
}
