//! Entries with stable numbers, in chunks: growing never copies and never needs twice the
//! memory.

use super::entry::Entry;

const CHUNK: usize = 1024;

/// Number of an entry within its shard. Reused after removal.
pub(super) type Id = u32;

#[derive(Debug, Default)]
pub(super) struct Slab {
    chunks: Vec<Vec<Option<Entry>>>,
    free: Vec<Id>,
    len: usize,
}

impl Slab {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, id: Id) -> Option<&Entry> {
        self.chunks
            .get(id as usize / CHUNK)?
            .get(id as usize % CHUNK)?
            .as_ref()
    }

    pub(super) fn get_mut(&mut self, id: Id) -> Option<&mut Entry> {
        self.chunks
            .get_mut(id as usize / CHUNK)?
            .get_mut(id as usize % CHUNK)?
            .as_mut()
    }

    /// The name of an existing entry; empty if it does not exist.
    pub(super) fn name(&self, id: Id) -> &[u8] {
        self.get(id).map_or(&[], |entry| &entry.name)
    }

    pub(super) fn insert(&mut self, entry: Entry) -> Id {
        self.len += 1;
        if let Some(id) = self.free.pop()
            && let Some(slot) = self.slot(id)
        {
            *slot = Some(entry);
            return id;
        }
        if self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        let full = (self.chunks.len() - 1) * CHUNK;
        let last = self.chunks.len() - 1;
        self.chunks[last].push(Some(entry));
        let id = full + self.chunks[last].len() - 1;
        Id::try_from(id).unwrap_or(Id::MAX)
    }

    pub(super) fn remove(&mut self, id: Id) -> Option<Entry> {
        let entry = self.slot(id)?.take()?;
        self.free.push(id);
        self.len -= 1;
        Some(entry)
    }

    fn slot(&mut self, id: Id) -> Option<&mut Option<Entry>> {
        self.chunks
            .get_mut(id as usize / CHUNK)?
            .get_mut(id as usize % CHUNK)
    }

    /// Upper bound (exclusive) of the numbers.
    pub(super) fn last(&self) -> Id {
        Id::try_from(self.chunks.len() * CHUNK).unwrap_or(Id::MAX)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Id, &Entry)> {
        self.chunks
            .iter()
            .flatten()
            .zip(0..)
            .filter_map(|(slot, id)| slot.as_ref().map(|entry| (id, entry)))
    }
}
