//! Names of contenders: sequence, exclusive or shared, and the order of a queue. Pure.
//!
//! Knows the names that clients write: `lock-0000000001`, Curator's `_c_<guid>-lock-0000000001`
//! and `__READ__`, `__WRIT__`, kazoo's `<uuid>__lock__0000000001` and `__rlock__`, and `read-`,
//! `write-` of ZooKeeper's own recipes.

/// Digits of a sequence: ZooKeeper writes `%010d`.
const DIGITS: usize = 10;
/// Ends of the prefix of a contender that shares the lock with others like it. `lease-` is a lease of
/// Curator's semaphore: all of them hold.
const SHARED: [&str; 4] = ["__rlock__", "__READ__", "read-", "lease-"];
/// A hexadecimal part of a name with at least this many characters counts as globally unique.
const GUID_CHARS_MIN: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    Exclusive,
    Shared,
}

/// A child's name that ends in a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ContenderName<'a> {
    /// Everything before the sequence.
    pub(super) prefix: &'a str,
    pub(super) sequence: i32,
}

impl<'a> ContenderName<'a> {
    pub(super) fn parse(name: &'a str) -> Option<Self> {
        let at = name.len().checked_sub(DIGITS)?;
        let (prefix, last) = (name.get(..at)?, name.get(at..)?);
        // After 2147483647 the counter wraps: -2147483648 has 11 characters, -1 is `-000000001`.
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(digits) = last.strip_prefix('-').filter(|digits| is_number(digits)) {
            let sequence = digits.parse::<i32>().ok()?.checked_neg()?;
            return Some(Self { prefix, sequence });
        }
        if !is_number(last) {
            return None;
        }
        let value = last.parse::<i64>().ok()?;
        let negative = prefix.strip_suffix('-');
        // `lock-` is the usual prefix, so one dash belongs to it.
        let is_negative = |before: &str| before.ends_with(['-', '_']) || value > i64::from(i32::MAX);
        match negative.filter(|before| is_negative(before)) {
            Some(prefix) => Some(Self {
                prefix,
                sequence: i32::try_from(-value).ok()?,
            }),
            None => Some(Self {
                prefix,
                sequence: i32::try_from(value).ok()?,
            }),
        }
    }

    pub(super) fn share(self) -> Share {
        if SHARED.iter().any(|end| self.prefix.ends_with(end)) {
            Share::Shared
        } else {
            Share::Exclusive
        }
    }

    /// The prefix for a node of our own at the end of this queue: every client counts it as a
    /// contender. A globally unique part is replaced by another one, because clients look for
    /// their own node by it.
    pub(super) fn prefix_with(self, random: &str) -> String {
        let unique = self.prefix.strip_prefix("_c_").unwrap_or(self.prefix);
        let head = self.prefix.len() - unique.len();
        let is_part = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
        let length = unique.bytes().take_while(|byte| is_part(*byte)).count();
        if length < GUID_CHARS_MIN {
            return self.prefix.to_owned();
        }
        let mut digits = random.chars().filter(char::is_ascii_hexdigit).cycle();
        let replaced = unique[..length].chars().map(|old| match old {
            '-' => '-',
            _ => digits.next().unwrap_or('0'),
        });
        let replaced: String = replaced.collect();
        format!("{}{replaced}{}", &self.prefix[..head], &unique[length..])
    }
}

/// Sorts by arrival. `sequence` is ZooKeeper's counter, which wraps: the first of a queue is the
/// one after the largest gap.
pub(super) fn sort_by_arrival<T>(queue: &mut [T], sequence: impl Fn(&T) -> i32) {
    let unsigned = |contender: &T| sequence(contender).cast_unsigned();
    let lowest = queue.iter().map(unsigned).min().unwrap_or(0);
    let highest = queue.iter().map(unsigned).max().unwrap_or(0);
    // As unsigned numbers a queue over the wrap from 2147483647 is in order; a queue that
    // reaches over 0 is not.
    let reaches_over_zero = highest - lowest > i32::MAX.cast_unsigned();
    queue.sort_by_key(|contender| {
        if reaches_over_zero {
            i64::from(sequence(contender))
        } else {
            i64::from(unsigned(contender))
        }
    });
}

/// How many at the head of a sorted queue hold the lock: one, or all readers before the first
/// writer.
pub(super) fn holders(queue: impl IntoIterator<Item = Share>) -> usize {
    let mut queue = queue.into_iter();
    match queue.next() {
        None => 0,
        Some(Share::Exclusive) => 1,
        Some(Share::Shared) => 1 + queue.take_while(|share| *share == Share::Shared).count(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sequence(name: &str) -> Option<(&str, i32)> {
        ContenderName::parse(name).map(|name| (name.prefix, name.sequence))
    }

    #[test]
    fn names_of_known_clients_have_their_sequence() {
        // Curator, kazoo, the recipes, a wrapped counter, and names that are no contenders.
        let guid = "_c_0b5e3c1e-8d2e-4a52-9d9c-3f3d5f3e7a11-lock-";
        let name = format!("{guid}0000000042");
        assert_eq!(sequence(&name), Some((guid, 42)));
        assert_eq!(sequence("lock-0000000001"), Some(("lock-", 1)));
        assert_eq!(sequence("0000000007"), Some(("", 7)));
        assert_eq!(
            sequence("x-72057594037927936-0000000003"),
            Some(("x-72057594037927936-", 3))
        );
        assert_eq!(sequence("lock-2147483647"), Some(("lock-", i32::MAX)));
        assert_eq!(sequence("lock--2147483648"), Some(("lock-", i32::MIN)));
        assert_eq!(sequence("ab__lock__-2147483647"), Some(("ab__lock__", -i32::MAX)));
        assert_eq!(sequence("lock--000000001"), Some(("lock-", -1)));
        assert_eq!(sequence("lock--1000000000"), Some(("lock-", -1_000_000_000)));
        for other in [
            "lock",
            "",
            "lock-000000001x",
            "lock-9999999999é",
            "é000000001",
            "queue",
        ] {
            assert_eq!(sequence(other), None, "{other}");
        }
    }

    #[test]
    fn readers_are_recognised_by_their_names() {
        // Each client's reader, writer and plain lock.
        let share = |prefix| {
            let name = format!("{prefix}0000000001");
            ContenderName::parse(&name).unwrap().share()
        };
        for reader in [
            "ab__rlock__",
            "_c_x-__READ__",
            "read-",
            "guid-read-",
            "_c_x-lease-",
        ] {
            assert_eq!(share(reader), Share::Shared, "{reader}");
        }
        for writer in ["ab__lock__", "_c_x-__WRIT__", "write-", "lock-", ""] {
            assert_eq!(share(writer), Share::Exclusive, "{writer}");
        }
    }

    #[test]
    fn only_the_readers_before_the_first_writer_hold() {
        // Readers, then a writer, then a reader behind it; a writer first; nothing.
        use Share::{Exclusive, Shared};
        assert_eq!(holders([Shared, Shared, Exclusive, Shared]), 2);
        assert_eq!(holders([Exclusive, Shared]), 1);
        assert_eq!(holders([]), 0);
    }

    #[test]
    fn a_node_of_our_own_has_another_unique_part() {
        // Curator with dashes, Go without, kazoo; a plain prefix and a session stay.
        let ours = |prefix: &str| {
            let name = format!("{prefix}0000000001");
            let random = "fedcba9876543210fedcba9876543210";
            ContenderName::parse(&name).unwrap().prefix_with(random)
        };
        assert_eq!(
            ours("_c_00000000-0000-0000-0000-000000000000-lock-"),
            "_c_fedcba98-7654-3210-fedc-ba9876543210-lock-"
        );
        assert_eq!(
            ours("00000000000000000000000000000000__rlock__"),
            "fedcba9876543210fedcba9876543210__rlock__"
        );
        for same in ["lock-", "x-72057594037927936-", ""] {
            assert_eq!(ours(same), same);
        }
    }

    proptest! {
        #[test]
        fn a_queue_is_in_the_order_of_its_counter(start: i32, steps in proptest::collection::vec(1..1000i32, 0..50)) {
            let mut counter = start;
            let arrived: Vec<i32> = std::iter::once(start).chain(steps.into_iter().map(|step| {
                counter = counter.wrapping_add(step);
                counter
            })).collect();
            let mut queue = arrived.clone();
            queue.sort_unstable();
            sort_by_arrival(&mut queue, |one| *one);
            prop_assert_eq!(queue, arrived);
        }

        #[test]
        fn every_sequence_of_the_counter_is_parsed(sequence: i32) {
            let name = format!("lock-{sequence:010}");
            prop_assert_eq!(ContenderName::parse(&name), Some(ContenderName { prefix: "lock-", sequence }));
        }
    }
}
