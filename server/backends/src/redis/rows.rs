//! Converts the data of one key to an inventory row. Pure; runs a million times per scan.

use std::borrow::Cow;

use domain::format;
use domain::generation::Generation;
use domain::limits::OWNER_CHARS_MAX;
use domain::names::{OwnerId, Resource, Source};
use domain::observation::{Lifetime, ObservedCondition, ObservedLock, Sharer};
use domain::reported::{Reported, Why};
use domain::token::FencingToken;

use super::fingerprint::Fingerprint;
use super::json;
use super::limits::VALUE_BYTES_MAX;
use super::redisson::RedissonLock;
use super::symfony::SymfonyLock;
use crate::owner_value;
use config::redis::RedisValues;

pub(super) const NO_TTL_LENGTH: &str = "Redis reports the time left, not the granted TTL";
const NO_ACQUIRED: &str = "Redis does not record when a key was set";
const NO_RENEWED: &str = "Redis does not record renewals";
const NO_WAITERS: &str = "Redis keeps no queue of waiters";
const NO_TOKEN: &str = "Redis issues no fencing tokens";
const RAW_LEASE: &str = "the value is one secret, with no lease id of its own";
const JSON_LEASE: &str = "the value names no leaseId";
const REDISSON_LEASE: &str = "Redisson keeps no lease id";
const SYMFONY_LEASE: &str = "the token is one secret, with no lease id of its own";
/// [`VALUE_BYTES_MAX`] in words.
const VALUE_LIMIT: &str = "64 KiB";
/// Owners that a reason names.
const OWNERS_NAMED: usize = 3;
const UNREAD: &str = "this key is not a readable lock";

const _: () = assert!(VALUE_BYTES_MAX == 64 * 1024);

/// Builds rows; holds what all rows of this backend share.
pub(super) struct Rows {
    pub(super) key: Source,
    pub(super) hash: Source,
    sorted_set: Source,
    values: RedisValues,
}

impl Rows {
    pub(super) fn new(values: RedisValues) -> Self {
        Self {
            key: Source::fixed("key"),
            hash: Source::fixed("hash"),
            sorted_set: Source::fixed("zset"),
            values,
        }
    }

    /// Every source that rows may have.
    pub(super) const fn sources(&self) -> [&Source; 3] {
        [&self.key, &self.hash, &self.sorted_set]
    }

    pub(super) fn shows_values(&self) -> bool {
        self.values == RedisValues::Plain
    }

    /// A string key: JSON or a raw value. `pttl_ms` is the response of PTTL, -1 without a TTL.
    pub(super) fn string(&self, key: &[u8], pttl_ms: i64, value: &[u8]) -> ObservedLock {
        if value.len() > VALUE_BYTES_MAX {
            return self.too_long(key, Some(value.len() as u64));
        }
        let mut row = self.base(&self.key, key, lifetime(pttl_ms));
        let print = Fingerprint::from_value(value);
        row.generation = Reported::Value(Generation::new(print.generation("value:")));
        match json::parse(value) {
            Some(lock) => {
                row.owner = Reported::Value(owner(&lock.owner_id.0));
                row.lease_id = match lock.lease_id {
                    Some(lease) => Reported::Value(lease.0.as_ref().into()),
                    None => Reported::absent(JSON_LEASE),
                };
                if let Some(token) = lock.fencing_token {
                    row.fencing_token = Reported::Value(FencingToken::new(token.0));
                }
            }
            None => {
                row.owner = Reported::Value(self.secret_owner(value));
                row.lease_id = Reported::absent(RAW_LEASE);
            }
        }
        row
    }

    /// A Redisson hash.
    pub(super) fn redisson(&self, key: &[u8], pttl_ms: i64, lock: &RedissonLock) -> ObservedLock {
        let mut row = self.base(&self.hash, key, lifetime(pttl_ms));
        row.generation = Reported::Value(Generation::new(lock.generation()));
        row.lease_id = Reported::absent(REDISSON_LEASE);
        row.owner_count = u32::try_from(lock.owners.len()).unwrap_or(u32::MAX);
        let is_exclusive = lock.mode != Some("read");
        row.condition = two_owners(is_exclusive, "hash", lock.owners.iter().map(String::as_str));
        if !is_exclusive && row.owner_count > 1 {
            row.sharers = sharers(
                lock.readers()
                    .map(|(generation, field)| (generation, owner(field))),
            );
        }
        if let Some(first) = lock.owners.first() {
            row.owner = Reported::Value(owner(first));
        }
        row
    }

    /// A sorted set of Symfony. Its last token ends with the key.
    pub(super) fn symfony(&self, key: &[u8], pttl_ms: i64, lock: &SymfonyLock) -> ObservedLock {
        let mut row = self.base(&self.sorted_set, key, lifetime(pttl_ms));
        row.generation = Reported::Value(Generation::new(lock.generation()));
        row.lease_id = Reported::absent(SYMFONY_LEASE);
        row.owner_count = u32::try_from(lock.holds.len()).unwrap_or(u32::MAX);
        let owners: Vec<OwnerId> = self.symfony_owners(lock).collect();
        row.condition = two_owners(!lock.is_shared, "sorted set", owners.iter().map(OwnerId::as_str));
        if lock.is_shared && row.owner_count > 1 {
            row.sharers = sharers(lock.generations().zip(owners.iter().cloned()));
        }
        if let Some(first) = owners.into_iter().next() {
            row.owner = Reported::Value(first);
        }
        row
    }

    pub(super) fn symfony_owners(&self, lock: &SymfonyLock) -> impl Iterator<Item = OwnerId> {
        lock.holds
            .iter()
            .map(|(token, _)| self.secret_owner(token.as_bytes()))
    }

    /// Owner of a lock whose value authorizes a release.
    fn secret_owner(&self, value: &[u8]) -> OwnerId {
        match self.values {
            RedisValues::Plain => OwnerId::new(owner_value::text(value)),
            RedisValues::Fingerprint => OwnerId::new(Fingerprint::from_value(value).owner()),
        }
    }

    /// A string that is too long to be read as a lock. Its length is unknown if the account may
    /// not read it.
    pub(super) fn too_long(&self, key: &[u8], bytes: Option<u64>) -> ObservedLock {
        let size = bytes.map_or_else(|| format!("more than {VALUE_LIMIT}"), format::bytes);
        let why = format!("The value is {size}: not read, because locks have at most {VALUE_LIMIT}");
        self.unrecognised(key, why)
    }

    /// A hash or a sorted set (`noun`) that takes more memory than a lock.
    pub(super) fn large_collection(&self, key: &[u8], noun: &str, bytes: u64) -> ObservedLock {
        let size = format::bytes(bytes);
        let why = format!("The key is a {noun} of {size} of memory: not read, because locks are smaller");
        self.unrecognised(key, why)
    }

    /// A key that matches a pattern and is no known lock. Never unlocked: it has no generation.
    pub(super) fn unrecognised(&self, key: &[u8], why: impl Into<Why>) -> ObservedLock {
        let lifetime = Lifetime::Unknown {
            why: Cow::Borrowed(UNREAD),
        };
        let mut row = self.base(&self.key, key, lifetime);
        row.condition = Some(ObservedCondition::Unrecognised { why: why.into() });
        row
    }

    fn base(&self, source: &Source, key: &[u8], lifetime: Lifetime) -> ObservedLock {
        ObservedLock {
            source: source.clone(),
            resource: Resource::from_bytes(key),
            owner: Reported::unknown(UNREAD),
            owner_count: 1,
            sharers: Vec::new(),
            lease_id: Reported::unknown(UNREAD),
            generation: Reported::unknown(UNREAD),
            fencing_token: Reported::absent(NO_TOKEN),
            acquired_at: Reported::unknown(NO_ACQUIRED),
            renewed_at: Reported::unknown(NO_RENEWED),
            lifetime,
            waiter_count: Reported::unknown(NO_WAITERS),
            oldest_waiter_ms: None,
            line: Vec::new(),
            condition: None,
        }
    }
}

fn sharers(owners: impl Iterator<Item = (String, OwnerId)>) -> Vec<Sharer> {
    let sharer = |(generation, owner): (String, OwnerId)| Sharer {
        generation: Generation::new(generation),
        owner: Some(owner),
        token: None,
    };
    owners.map(sharer).collect()
}

/// Only readers share a lock.
fn two_owners<'a>(
    is_exclusive: bool,
    noun: &str,
    owners: impl ExactSizeIterator<Item = &'a str>,
) -> Option<ObservedCondition> {
    let count = owners.len();
    (is_exclusive && count > 1).then(|| {
        let owner_names = owners.take(OWNERS_NAMED).collect::<Vec<&str>>().join(", ");
        let ellipsis = if count > OWNERS_NAMED { ", …" } else { "" };
        let why = format!(
            "The {noun} has {count} owners at once, and this lock is exclusive: {owner_names}{ellipsis}"
        );
        ObservedCondition::DualOwner { why: why.into() }
    })
}

fn lifetime(pttl_ms: i64) -> Lifetime {
    if pttl_ms < 0 {
        Lifetime::NoTtl {
            why: Cow::Borrowed("the key has no TTL"),
        }
    } else {
        Lifetime::Leased {
            // Rounded down by the server: 0 is an existing key, since Redis returns no expired
            // one.
            remaining_ms: pttl_ms.max(1),
            ttl_ms: Reported::unknown(NO_TTL_LENGTH),
        }
    }
}

fn owner(text: &str) -> OwnerId {
    // Bytes first: a cheap bound of the number of characters.
    if text.len() <= OWNER_CHARS_MAX {
        return OwnerId::new(text);
    }
    match text.char_indices().nth(OWNER_CHARS_MAX) {
        Some((end, _)) => OwnerId::new(&text[..end]),
        None => OwnerId::new(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raw_value_is_shown_only_if_configured() {
        // The value is the owner's secret: it authorizes a release.
        let hidden = Rows::new(RedisValues::Fingerprint).string(b"lock:a", 5_000, b"secret");
        assert_eq!(hidden.owner.known().unwrap().as_str(), "fingerprint:2bb80d53");
        assert!(!format!("{hidden:?}").contains("secret\""));
        let shown = Rows::new(RedisValues::Plain).string(b"lock:a", 5_000, b"\xffsecret");
        assert_eq!(shown.owner.known().unwrap().as_str(), "0xff736563726574");
    }

    #[test]
    fn key_without_ttl_is_no_ttl_and_missing_facts_are_unknown() {
        // PTTL answers -1.
        let row =
            Rows::new(RedisValues::Fingerprint).string(b"lock:a", -1, br#"{"ownerId":"w","fencingToken":7}"#);
        assert!(matches!(row.lifetime, Lifetime::NoTtl { .. }));
        assert_eq!(row.fencing_token, Reported::Value(FencingToken::new(7)));
        assert!(row.acquired_at.is_unknown() && row.waiter_count.is_unknown() && row.lease_id.is_absent());
    }

    #[test]
    fn a_long_value_is_a_row_that_cannot_be_unlocked() {
        // One byte over the limit; and an owner longer than shown.
        let rows = Rows::new(RedisValues::Fingerprint);
        let row = rows.string(b"lock:a", 5_000, &vec![b'x'; VALUE_BYTES_MAX + 1]);
        assert!(row.generation.is_unknown() && row.owner.is_unknown());
        assert!(matches!(
            row.condition,
            Some(ObservedCondition::Unrecognised { .. })
        ));
        let long = format!(r#"{{"ownerId":"{}"}}"#, "é".repeat(OWNER_CHARS_MAX + 9));
        let row = rows.string(b"lock:a", 5_000, long.as_bytes());
        assert_eq!(
            row.owner.known().unwrap().as_str().chars().count(),
            OWNER_CHARS_MAX
        );
    }
}
