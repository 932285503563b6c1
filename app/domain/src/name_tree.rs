//! Name tree: resource names as paths of segments, split after each `:` and `/`.

use serde::{Deserialize, Serialize};

use crate::state::{LockState, StateCounts};

/// Length of the next segment of `name` after `from`, including its separator; without one
/// the rest. A leading separator belongs to the segment after it (`/locks/` is a single
/// segment).
pub fn segment_len(name: &[u8], from: usize) -> usize {
    let rest = name.get(from..).unwrap_or_default();
    let leading = rest.iter().take_while(|b| is_separator(**b)).count();
    match rest[leading..].iter().position(|b| is_separator(*b)) {
        Some(at) => leading + at + 1,
        None => rest.len(),
    }
}

pub const fn is_separator(byte: u8) -> bool {
    matches!(byte, b':' | b'/')
}

/// The last segment boundary at or before the end of `prefix`: `tenant_1:bil` → 9.
pub fn boundary(prefix: &[u8]) -> usize {
    prefix
        .iter()
        .rposition(|b| is_separator(*b))
        .map_or(0, |at| at + 1)
}

/// Length of the leading whole segments that two names share: the list dims it.
pub fn shared_len(one: &str, other: &str) -> usize {
    let common = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let end = boundary(&one.as_bytes()[..common]);
    if one.is_char_boundary(end) { end } else { 0 }
}

/// Smallest byte string greater than every string that starts with `prefix`; `None` if every
/// byte is the highest.
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let keep = prefix.iter().rposition(|b| *b != 0xff)?;
    let mut end = prefix[..=keep].to_vec();
    end[keep] += 1;
    Some(end)
}

/// One node of the name tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PrefixChild {
    pub segment: String,
    /// Text form of the whole prefix including this node.
    pub prefix: String,
    pub locks: u64,
    pub waiters: u64,
    pub worst: LockState,
    pub states: StateCounts,
    /// A lock's name ends here: there is nothing below.
    pub is_leaf: bool,
}

/// Children of one prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PrefixNode {
    pub prefix: String,
    pub total: u64,
    pub states: StateCounts,
    pub children: Vec<PrefixChild>,
    /// Locks below children that are not listed, because there are too many.
    pub more_locks: u64,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn segments_end_with_their_separator() {
        let name = b"tenant_1:billing/2026";
        assert_eq!(segment_len(name, 0), 9);
        assert_eq!(segment_len(name, 9), 8);
        assert_eq!(segment_len(name, 17), 4);
        assert_eq!(segment_len(b"/locks/a", 0), 7);
        assert_eq!(boundary(b"tenant_1:bil"), 9);
        assert_eq!(shared_len("tenant_1:a:x", "tenant_1:ab:x"), 9);
    }

    proptest! {
        #[test]
        fn segments_put_together_are_the_name(name in proptest::collection::vec(prop_oneof![Just(b':'), Just(b'/'), any::<u8>()], 0..40)) {
            let mut at = 0;
            while at < name.len() {
                let len = segment_len(&name, at);
                prop_assert!(len > 0);
                at += len;
            }
            prop_assert_eq!(at, name.len());
        }

        #[test]
        fn after_prefix_bounds_exactly_the_names_that_start_with_it(
            prefix in proptest::collection::vec(prop_oneof![Just(0xffu8), any::<u8>()], 1..5),
            name in proptest::collection::vec(prop_oneof![Just(0xffu8), any::<u8>()], 0..6),
        ) {
            let inside = name >= prefix && after_prefix(&prefix).is_none_or(|end| name < end);
            prop_assert_eq!(inside, name.starts_with(&prefix));
        }
    }
}
