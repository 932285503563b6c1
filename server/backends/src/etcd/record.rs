//! One key as a lock: the lock it belongs to, and its owner. Pure.

use domain::names::{OwnerId, Resource, Source};
use etcd_client::KeyValue;

use super::range::ANSWER_BYTES_MAX;
use crate::owner_value;

/// A key without its value, which may be large.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) key: Vec<u8>,
    pub(super) owner: OwnerId,
    /// 0: no lease.
    pub(super) lease: i64,
    pub(super) create_revision: i64,
    /// False: the value is too large, and `owner` is derived from the lease only.
    pub(super) value_read: bool,
}

impl Record {
    /// From a key that was read with or without its value.
    pub(super) fn parse(kv: &KeyValue, value_read: bool) -> Self {
        Self {
            key: kv.key().to_vec(),
            owner: owner(kv.value(), kv.lease()),
            lease: kv.lease(),
            create_revision: kv.create_revision(),
            value_read,
        }
    }
}

/// The lock that a key belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum KeyPlacement {
    /// A lock of its own.
    Key,
    /// In the queue of the mutex or election of this name.
    Queue(Vec<u8>),
    /// Looks like a queue that the configured prefix shows only in part.
    CutQueue,
}

/// `concurrency` writes `name/<own lease in hex>`; a last segment that only resembles one is
/// part of the name.
pub(super) fn place(key: &[u8], lease: i64, prefix: &[u8]) -> KeyPlacement {
    let Some(slash) = key
        .iter()
        .rposition(|byte| *byte == b'/')
        .filter(|slash| *slash > 0)
    else {
        return KeyPlacement::Key;
    };
    if lease == 0 || key[slash + 1..] != *hex(lease).as_bytes() {
        return KeyPlacement::Key;
    }
    if key[..=slash].starts_with(prefix) {
        KeyPlacement::Queue(key[..slash].to_vec())
    } else {
        KeyPlacement::CutQueue
    }
}

/// The lock that a change of this key concerns.
pub(super) fn name(key: &[u8], lease: i64, prefix: &[u8]) -> (Source, Resource) {
    match place(key, lease, prefix) {
        KeyPlacement::Queue(name) => (mutex_source(), Resource::from_bytes(&name)),
        KeyPlacement::Key | KeyPlacement::CutQueue => (key_source(), Resource::from_bytes(key)),
    }
}

pub(super) fn key_source() -> Source {
    Source::fixed("key")
}

pub(super) fn mutex_source() -> Source {
    Source::fixed("mutex")
}

/// Why a key is shown alone although it may be part of a queue.
pub(super) const CUT_QUEUE: &str =
    "it looks like a queue position, but the configured prefix covers only part of the queue";

/// Why the owner of a key is unknown.
pub(super) const LARGE_VALUE: &str = "the value is larger than 4 MiB: not read";
const _: () = assert!(ANSWER_BYTES_MAX == 4 * 1024 * 1024);

/// A lease id as etcd's own tools write it: Go's `%x` of a signed number.
pub(super) fn hex(lease: i64) -> String {
    let sign = if lease < 0 { "-" } else { "" };
    format!("{sign}{:x}", lease.unsigned_abs())
}

fn owner(value: &[u8], lease: i64) -> OwnerId {
    if value.is_empty() {
        return OwnerId::new(hex(lease));
    }
    owner_value::json_owner(value).unwrap_or_else(|| OwnerId::new(owner_value::text(value)))
}

/// The first key after all that begin with `prefix`; `\0` means "to the end" for etcd.
pub(super) fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    match prefix.iter().rposition(|byte| *byte < 0xff) {
        Some(last) => {
            let mut end = prefix[..=last].to_vec();
            end[last] += 1;
            end
        }
        None => vec![0],
    }
}

#[cfg(test)]
mod tests {
    use domain::limits::OWNER_CHARS_MAX;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_a_key_named_after_its_own_lease_is_in_a_queue() {
        // The same name with another lease, without one, at the root, and a queue that the
        // prefix cuts.
        let key = b"/locks/job/694d8a";
        assert_eq!(
            place(key, 0x69_4d8a, b"/locks/"),
            KeyPlacement::Queue(b"/locks/job".to_vec())
        );
        assert_eq!(place(key, 0x69_4d8b, b"/locks/"), KeyPlacement::Key);
        assert_eq!(place(key, 0, b"/locks/"), KeyPlacement::Key);
        assert_eq!(place(b"/694d8a", 0x69_4d8a, b"/"), KeyPlacement::Key);
        assert_eq!(place(key, 0x69_4d8a, b"/locks/job/69"), KeyPlacement::CutQueue);
        assert_eq!(place(b"/locks/0694d8a", 0x69_4d8a, b"/locks/"), KeyPlacement::Key);
        assert_eq!(place(b"/locks/694D8A", 0x69_4d8a, b"/locks/"), KeyPlacement::Key);
    }

    #[test]
    fn owners_come_from_json_text_or_the_lease() {
        // Values as clients write them, and hostile ones.
        assert_eq!(owner(b"", 0xabc).as_str(), "abc");
        assert_eq!(owner(br#"{"ownerId":"w-1","x":2}"#, 1).as_str(), "w-1");
        assert_eq!(owner(br#"{"ownerId":""}"#, 1).as_str(), r#"{"ownerId":""}"#);
        assert_eq!(owner(br#"{"owner"#, 1).as_str(), r#"{"owner"#);
        assert_eq!(owner(b"w\xff", 1).as_str(), "0x77ff");
        let long = owner("é".repeat(9000).as_bytes(), 1);
        assert_eq!(long.as_str().chars().count(), OWNER_CHARS_MAX);
        assert!(long.as_str().starts_with('é') && long.as_str().ends_with('…'));
    }

    proptest! {
        #[test]
        fn a_prefix_ends_right_after_its_last_key(prefix in proptest::collection::vec(any::<u8>(), 1..6), tail in proptest::collection::vec(any::<u8>(), 0..4)) {
            let end = prefix_end(&prefix);
            let key = [prefix.clone(), tail].concat();
            prop_assert!(end == [0] || key < end);
            prop_assert!(end == [0] || !end.starts_with(&prefix));
        }

        #[test]
        fn owners_are_never_longer_than_the_limit(value in proptest::collection::vec(any::<u8>(), 0..6000)) {
            prop_assert!(owner(&value, 7).as_str().chars().count() <= OWNER_CHARS_MAX);
        }
    }
}
