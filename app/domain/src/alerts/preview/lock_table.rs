//! Numbers for the names in events, so that a row costs one look-up and no allocation.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher as _;
use std::sync::Arc;

use super::{CurrentState, Gap, ScanTimes};
use crate::alerts::baseline::{LOCKS_MAX, PREFIXES_MAX};
use crate::history::template::template;
use crate::names::{BackendName, LockId, Resource, Source};

/// For a backend that is no longer configured.
const SCAN_TIMES: ScanTimes = ScanTimes {
    poll_interval_ms: 2_000,
    grain_ms: 1,
};

/// A time without observation of one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) began: i64,
    pub(super) ended: i64,
    /// Of its backend alone: events after it show what changed in it.
    pub(super) is_outage: bool,
}

/// Bounded like the baseline of the live rules: beyond the limit, the least recently used half
/// is evicted.
#[derive(Clone)]
pub(super) struct LockTable {
    sources: Vec<SourceEntry>,
    /// Index for the last event; consecutive events often share it.
    last_source: usize,
    locks: Vec<Option<KnownLock>>,
    free: Vec<u32>,
    used: usize,
    /// `None`: no rule needs prefixes.
    prefixes: Option<HashMap<(BackendName, String), u32>>,
    prefix_names: Vec<(BackendName, String)>,
    /// Hashes of all names, including evicted ones.
    seen: HashSet<u64>,
    hasher: RandomState,
}

/// One source of one backend.
#[derive(Clone)]
struct SourceEntry {
    backend: BackendName,
    source: Source,
    scan_times: ScanTimes,
    /// So far, oldest first.
    gaps: Vec<Span>,
    locks: HashMap<Arc<[u8]>, u32>,
}

#[derive(Clone)]
struct KnownLock {
    source_index: usize,
    name: Arc<[u8]>,
    touched_at: i64,
    prefix: Option<u32>,
}

/// One lock as the rules see it.
#[derive(Debug, Clone, Copy)]
pub(super) struct LockRef<'t> {
    pub(super) backend: &'t BackendName,
    pub(super) source: &'t Source,
    pub(super) name: &'t [u8],
    pub(super) scan_times: ScanTimes,
    pub(super) gaps: &'t [Span],
    /// Number and text of its template.
    pub(super) prefix: Option<(u32, &'t str)>,
}

impl LockRef<'_> {
    pub(super) fn id(&self) -> LockId {
        LockId {
            backend: self.backend.clone(),
            source: self.source.clone(),
            resource: Resource::from_bytes(self.name),
        }
    }
}

impl LockTable {
    pub(super) fn new(of_prefixes: bool) -> Self {
        Self {
            sources: Vec::new(),
            last_source: 0,
            locks: Vec::new(),
            free: Vec::new(),
            used: 0,
            prefixes: of_prefixes.then(HashMap::new),
            prefix_names: Vec::new(),
            seen: HashSet::new(),
            hasher: RandomState::new(),
        }
    }

    /// Number of different locks so far.
    pub(super) fn seen(&self) -> u64 {
        self.seen.len() as u64
    }

    pub(super) fn find(&mut self, backend: &str, source: &str, resource: &[u8]) -> Option<u32> {
        let index = self.source_index(backend, source)?;
        self.sources[index].locks.get(resource).copied()
    }

    fn source_index(&mut self, backend: &str, source: &str) -> Option<usize> {
        let matches =
            |entry: &SourceEntry| entry.backend.as_str() == backend && entry.source.as_str() == source;
        if self.sources.get(self.last_source).is_some_and(matches) {
            return Some(self.last_source);
        }
        self.last_source = self.sources.iter().position(matches)?;
        Some(self.last_source)
    }

    /// `None`: the backend or source name is invalid.
    pub(super) fn add(
        &mut self,
        present: &dyn CurrentState,
        (backend, source): (&str, &str),
        resource: &[u8],
    ) -> Option<u32> {
        let source_index = match self.source_index(backend, source) {
            Some(index) => index,
            None => {
                let (backend, source) = (BackendName::parse(backend).ok()?, Source::parse(source).ok()?);
                self.sources.push(SourceEntry {
                    scan_times: present.scan_times(&backend, &source).unwrap_or(SCAN_TIMES),
                    backend,
                    source,
                    gaps: Vec::new(),
                    locks: HashMap::new(),
                });
                self.sources.len() - 1
            }
        };
        let backend = self.sources[source_index].backend.clone();
        let prefix = match self.prefixes {
            Some(_) => self.prefix(&backend, template(resource)),
            None => None,
        };
        self.seen.insert(self.hasher.hash_one((source_index, resource)));
        let name: Arc<[u8]> = resource.into();
        let lock = Some(KnownLock {
            source_index,
            name: name.clone(),
            touched_at: i64::MIN,
            prefix,
        });
        let number = match self.free.pop() {
            Some(number) => {
                self.locks[number as usize] = lock;
                number
            }
            None => {
                self.locks.push(lock);
                u32::try_from(self.locks.len() - 1).ok()?
            }
        };
        self.sources[source_index].locks.insert(name, number);
        self.used += 1;
        Some(number)
    }

    /// The number of a template; `None` beyond the limit.
    pub(super) fn prefix(&mut self, backend: &BackendName, prefix: String) -> Option<u32> {
        let known = self.prefixes.as_mut()?;
        let key = (backend.clone(), prefix);
        if let Some(number) = known.get(&key) {
            return Some(*number);
        }
        let number = u32::try_from(known.len())
            .ok()
            .filter(|number| (*number as usize) < PREFIXES_MAX)?;
        self.prefix_names.push(key.clone());
        known.insert(key, number);
        Some(number)
    }

    pub(super) fn prefix_name(&self, number: u32) -> Option<&(BackendName, String)> {
        self.prefix_names.get(number as usize)
    }

    pub(super) fn touch(&mut self, number: u32, at: i64) {
        if let Some(Some(lock)) = self.locks.get_mut(number as usize) {
            lock.touched_at = at;
        }
    }

    /// Requires a number that was assigned and not evicted.
    pub(super) fn lock(&self, number: u32) -> LockRef<'_> {
        static NAME: &[u8] = b"";
        let lock = self.locks.get(number as usize).and_then(Option::as_ref);
        let entry = &self.sources[lock.map_or(0, |lock| lock.source_index)];
        LockRef {
            backend: &entry.backend,
            source: &entry.source,
            name: lock.map_or(NAME, |lock| &lock.name),
            scan_times: entry.scan_times,
            gaps: &entry.gaps,
            prefix: lock
                .and_then(|lock| lock.prefix)
                .and_then(|number| Some((number, self.prefix_name(number)?.1.as_str()))),
        }
    }

    /// A time without observation begins.
    pub(super) fn gap(&mut self, gap: &Gap) {
        let span = Span {
            began: gap.began,
            ended: gap.ended,
            is_outage: gap.backend.is_some(),
        };
        let is_of = |entry: &&mut SourceEntry| gap.backend.as_ref().is_none_or(|name| *name == entry.backend);
        self.sources
            .iter_mut()
            .filter(is_of)
            .for_each(|entry| entry.gaps.push(span));
    }

    pub(super) const fn used(&self) -> usize {
        self.used
    }

    pub(super) const fn is_full(&self) -> bool {
        self.used >= LOCKS_MAX
    }

    /// Evicts the least recently used half, preferring locks that are free. Returns their
    /// numbers.
    pub(super) fn forget_half(&mut self, is_held: &dyn Fn(u32) -> bool) -> Vec<u32> {
        let known_locks = || {
            let locks = self.locks.iter().zip(0_u32..);
            locks.filter_map(|(lock, number)| Some((lock.as_ref()?.touched_at, number)))
        };
        let mut all: Vec<(i64, u32)> = known_locks().filter(|(_, number)| !is_held(*number)).collect();
        if all.len() <= LOCKS_MAX / 4 {
            all = known_locks().collect();
        }
        let middle = all.len() / 2;
        all.select_nth_unstable(middle);
        all.truncate(middle + 1);
        let forgotten: Vec<u32> = all.into_iter().map(|(_, number)| number).collect();
        for number in &forgotten {
            if let Some(lock) = self.locks[*number as usize].take() {
                self.sources[lock.source_index].locks.remove(&lock.name);
            }
        }
        self.used -= forgotten.len();
        self.free.extend(&forgotten);
        forgotten
    }
}
