//! Which parts of a source were read before. A new lock of another part may have been held all the time, as every lock
//! of a first scan: its acquisition is not recorded.
//!
//! Adapters without parts, and parts that are listed but never completely, count as read: otherwise no acquisition of
//! theirs would be recorded.

use std::fmt;

use backends::{NamePredicate, SourcePass};
use domain::names::Source;
use domain::observation::Coverage;
use domain::tick::Tick;

use super::shard::Shard;

#[derive(Clone, Default)]
pub(super) struct KnownParts {
    is_whole: bool,
    /// Each but those of the first scan covers a name that the ones before it do not.
    parts: Vec<NamePredicate>,
}

impl fmt::Debug for KnownParts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("KnownParts")
            .field("is_whole", &self.is_whole)
            .field("parts", &self.parts.len())
            .finish()
    }
}

impl KnownParts {
    pub(super) fn whole() -> Self {
        Self {
            is_whole: true,
            parts: Vec::new(),
        }
    }

    pub(super) fn has(&self, name: &[u8]) -> bool {
        self.is_whole || self.parts.iter().any(|covers| covers(name))
    }

    /// Adds the parts that a partial scan has read completely. `first_seen`: the locks that it found and whose
    /// acquisition was not observed, each with whether an earlier scan had found it.
    fn add<'a>(
        &mut self,
        seen: u64,
        read: Vec<NamePredicate>,
        first_seen: impl Iterator<Item = (&'a [u8], bool)>,
    ) {
        if self.parts.is_empty() {
            self.is_whole = read.is_empty() && seen > 0;
            self.parts = read;
            return;
        }
        for (name, is_found_again) in first_seen {
            if self.has(name) {
                continue;
            }
            match read.iter().find(|covers| covers(name)) {
                Some(covers) => self.parts.push(covers.clone()),
                None if is_found_again => *self = Self::whole(),
                None => {}
            }
        }
    }
}

impl Shard {
    /// Ends scan number `pass`, which began at `began` and has read these `parts` of its partial sources completely.
    pub(super) fn add_known_parts(
        &mut self,
        sources: &[SourcePass],
        parts: &[(Source, NamePredicate)],
        (pass, began): (u32, Tick),
    ) {
        let slab = &self.slab;
        for (number, info) in self.sources.iter_mut().enumerate() {
            if info.known.is_whole {
                continue;
            }
            let scanned = sources.iter().find(|scanned| scanned.source == info.source);
            let Some(Coverage::Partial { seen, .. }) = scanned.map(|scanned| &scanned.coverage) else {
                info.known = KnownParts::whole();
                continue;
            };
            let is_same = |part: &&(Source, NamePredicate)| part.0 == info.source;
            let read = parts.iter().filter(is_same).map(|part| part.1.clone()).collect();
            let first_seen = slab
                .iter()
                .map(|(_, entry)| entry)
                .filter(|entry| {
                    usize::from(entry.source) == number && entry.pass == pass && !entry.seen_begin
                })
                .map(|entry| (&*entry.name, entry.first_seen < began));
            info.known.add(*seen, read, first_seen);
        }
    }
}
