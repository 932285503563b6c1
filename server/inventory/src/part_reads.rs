//! When the parts of a source were last read completely. A new lock of a part that was not read for a while was acquired
//! at any time since then.

use backends::NamePredicate;
use domain::tick::Tick;

/// Scans stored per source. If the last scan of a part is not stored, an older one is used: its bound is earlier but still valid.
const READS_MAX: usize = 8;
/// After this many such scans in a row, every scan may list a part that none reads completely. A single one may be the first scan
/// of a part that became available again.
const LISTING_OTHERS_MIN: u32 = 2;

#[derive(Clone, Default)]
pub(super) struct PartReads {
    /// Oldest first.
    reads: Vec<PartRead>,
    /// Successive scans, up to the last one, that found locks of a part that they have not read completely.
    listing_others: u32,
}

#[derive(Clone)]
struct PartRead {
    /// Begin of the scan.
    began: Tick,
    /// `None`: everything.
    parts: Option<Vec<NamePredicate>>,
}

impl PartRead {
    fn covers(&self, name: &[u8]) -> bool {
        let parts = self.parts.as_ref();
        parts.is_none_or(|parts| parts.iter().any(|covers| covers(name)))
    }
}

impl PartReads {
    /// Begin of the last scan that has read the part of this name completely; `None`: not known.
    pub(super) fn last(&self, name: &[u8]) -> Option<Tick> {
        let (last, earlier) = self.reads.split_last()?;
        if last.covers(name) {
            return Some(last.began);
        }
        if self.listing_others >= LISTING_OTHERS_MIN {
            return None;
        }
        let last = earlier.iter().rev().find(|read| read.covers(name))?;
        Some(last.began)
    }

    pub(super) fn add_complete(&mut self, began: Tick) {
        self.reads = vec![PartRead { began, parts: None }];
        self.listing_others = 0;
    }

    pub(super) fn add_partial(&mut self, began: Tick, parts: Vec<NamePredicate>, lists_others: bool) {
        let count = |read: &PartRead| read.parts.as_ref().map(Vec::len);
        // Equal numbers of parts are most likely the same parts: the new scan replaces the last. The oldest scan stays, because
        // it covers the most.
        if self.reads.len() > 1 && self.reads.last().and_then(count) == Some(parts.len()) {
            self.reads.pop();
        }
        self.reads.push(PartRead {
            began,
            parts: Some(parts),
        });
        if self.reads.len() > READS_MAX {
            self.reads.remove(1);
        }
        self.listing_others = match lists_others {
            true => self.listing_others.saturating_add(1),
            false => 0,
        };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn parts(prefixes: &[&'static str]) -> Vec<NamePredicate> {
        let predicate = |prefix: &&'static str| {
            let prefix = *prefix;
            Arc::new(move |name: &[u8]| name.starts_with(prefix.as_bytes())) as NamePredicate
        };
        prefixes.iter().map(predicate).collect()
    }

    #[test]
    fn a_part_has_the_time_of_its_last_complete_scan() {
        // Everything at 0 s; then one of two parts for many scans, the other once.
        let mut reads = PartReads::default();
        assert_eq!(reads.last(b"a:1"), None);
        reads.add_complete(Tick(0));
        for at in 1..=20 {
            let read: &[&'static str] = if at == 10 { &["a:", "b:"] } else { &["a:"] };
            reads.add_partial(Tick(at), parts(read), false);
        }
        assert_eq!(reads.last(b"a:1"), Some(Tick(20)));
        assert_eq!(reads.last(b"b:1"), Some(Tick(10)));
        assert_eq!(reads.last(b"c:1"), Some(Tick(0)));
        reads.add_partial(Tick(21), parts(&["a:"]), true);
        assert_eq!(
            reads.last(b"b:1"),
            Some(Tick(10)),
            "its first scan may have been cut"
        );
        reads.add_partial(Tick(22), parts(&["a:"]), true);
        assert_eq!(reads.last(b"b:1"), None, "every scan may list it");
        reads.add_complete(Tick(23));
        assert_eq!(reads.last(b"b:1"), Some(Tick(23)));
    }

    #[test]
    fn few_scans_are_stored_and_the_first_stays() {
        // Alternating numbers of parts.
        let mut reads = PartReads::default();
        reads.add_complete(Tick(0));
        for at in 1..=100 {
            let read: &[&'static str] = if at % 2 == 0 { &["a:", "b:"] } else { &["a:"] };
            reads.add_partial(Tick(at), parts(read), false);
        }
        assert_eq!(reads.reads.len(), READS_MAX);
        assert_eq!(reads.last(b"c:1"), Some(Tick(0)));
    }
}
