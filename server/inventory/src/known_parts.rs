//! The parts of a source that earlier scans have read. A lock that is first found in another part may have been held before, like
//! every lock of a first scan, so its acquisition is not recorded.
//!
//! Adapters without parts, and parts that are listed but never completely, count as read: otherwise no acquisition of
//! theirs would be recorded.

use std::fmt;

use backends::{NamePredicate, SourcePass};
use domain::names::Source;
use domain::observation::Coverage;
use domain::tick::Tick;

use super::part_reads::PartReads;
use super::shard::Shard;
use super::slab::{Id, Slab};

/// Locks per partial scan for which it is checked whether their part was read completely, evenly spread over all.
const CHECKED_MAX: Id = 20_000;

#[derive(Clone, Default)]
pub(super) struct KnownParts {
    is_whole: bool,
    /// Each but those of the first scan covers a name that the ones before it do not.
    parts: Vec<NamePredicate>,
    reads: PartReads,
}

impl fmt::Debug for KnownParts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("KnownParts")
            .field("is_whole", &self.is_whole)
            .field("parts", &self.parts.len())
            .finish_non_exhaustive()
    }
}

/// A scan that has not read every source completely.
#[derive(Default)]
pub(super) struct PartialScan {
    /// Parts that it has read completely.
    pub(super) parts: Vec<(Source, NamePredicate)>,
    /// Sources for which it does not show whether locks that it has not found are held.
    pub(super) undecided: Vec<Source>,
}

impl KnownParts {
    pub(super) fn whole() -> Self {
        Self {
            is_whole: true,
            ..Self::default()
        }
    }

    pub(super) fn has(&self, name: &[u8]) -> bool {
        self.is_whole || self.parts.iter().any(|covers| covers(name))
    }

    /// See [`PartReads::last`].
    pub(super) fn last_read(&self, name: &[u8]) -> Option<Tick> {
        self.reads.last(name)
    }

    fn become_whole(&mut self) {
        self.is_whole = true;
        self.parts.clear();
    }

    /// Adds the parts that a partial scan has read completely. `first_seen`: the locks that it found and whose
    /// acquisition was not observed, each with whether an earlier scan had found it.
    fn add<'a>(
        &mut self,
        seen: u64,
        read: &[NamePredicate],
        first_seen: impl Iterator<Item = (&'a [u8], bool)>,
    ) {
        if self.parts.is_empty() {
            self.is_whole = read.is_empty() && seen > 0;
            self.parts = read.to_vec();
            return;
        }
        for (name, is_found_again) in first_seen {
            if self.has(name) {
                continue;
            }
            match read.iter().find(|covers| covers(name)) {
                Some(covers) => self.parts.push(covers.clone()),
                None if is_found_again => self.become_whole(),
                None => {}
            }
        }
    }
}

impl Shard {
    /// Ends scan number `pass`, which began at `began`.
    pub(super) fn add_known_parts(
        &mut self,
        sources: &[SourcePass],
        partial: &PartialScan,
        (pass, began): (u32, Tick),
    ) {
        let slab = &self.slab;
        for (number, info) in self.sources.iter_mut().enumerate() {
            let known = &mut info.known;
            let scanned = sources.iter().find(|scanned| scanned.source == info.source);
            let seen = match scanned.map(|scanned| &scanned.coverage) {
                Some(Coverage::Partial { seen, .. }) => *seen,
                Some(Coverage::Complete) => {
                    known.become_whole();
                    known.reads.add_complete(began);
                    continue;
                }
                None => {
                    known.become_whole();
                    continue;
                }
            };
            if partial.undecided.contains(&info.source) {
                continue;
            }
            let is_same = |part: &&(Source, NamePredicate)| part.0 == info.source;
            let read = partial.parts.iter().filter(is_same);
            let read: Vec<NamePredicate> = read.map(|part| part.1.clone()).collect();
            if !known.is_whole {
                let first_seen = slab
                    .iter()
                    .map(|(_, entry)| entry)
                    .filter(|entry| {
                        usize::from(entry.source) == number && entry.pass == pass && !entry.seen_begin
                    })
                    .map(|entry| (&*entry.name, entry.first_seen < began));
                known.add(seen, &read, first_seen);
            }
            let lists_others = has_found_others(slab, (number, pass), &read);
            known.reads.add_partial(began, read, lists_others);
        }
    }
}

/// Whether scan `pass` found a lock of this source outside of the parts that it has read completely.
fn has_found_others(slab: &Slab, (source, pass): (usize, u32), read: &[NamePredicate]) -> bool {
    let last = slab.last();
    let step = usize::try_from(last / CHECKED_MAX).unwrap_or(0) + 1;
    let checked = (0..last).step_by(step).filter_map(|id| slab.get(id));
    checked
        .filter(|entry| usize::from(entry.source) == source && entry.pass == pass)
        .any(|entry| !read.iter().any(|covers| covers(&entry.name)))
}
