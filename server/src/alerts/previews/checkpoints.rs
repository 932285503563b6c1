//! Replays of history that later previews of the same rules continue, so that they read only new rows.

use std::sync::Arc;

use domain::alerts::{Gap, Playback, Rule};
use parking_lot::Mutex;

use super::cache::Key;

/// Checkpoints without use for longer are dropped, in milliseconds.
const UNUSED_MS_MAX: i64 = 10 * 60_000;
/// Checkpoints, and locks of all of them together: some 700 bytes each.
const KEPT_MAX: usize = 8;
const LOCKS_MAX: usize = 120_000;

/// A replay of all events up to a position. **Invariant:** later writes change no row up to it.
pub(super) struct Checkpoint {
    pub(super) playback: Playback,
    /// Begin of the replay.
    pub(super) start_at: i64,
    pub(super) position: i64,
    /// Rows up to `position` are older.
    pub(super) settled_at: i64,
    /// Gaps that are part of the replay, and the time of its last event.
    pub(super) gaps: usize,
    pub(super) last_at: i64,
    pub(super) all_gaps: Arc<[Gap]>,
}

impl Checkpoint {
    /// Whether a replay with these gaps would be the same so far.
    pub(super) fn has_same_gaps(&self, gaps: &[Gap]) -> bool {
        gaps.get(..self.gaps) == self.all_gaps.get(..self.gaps)
            && gaps.get(self.gaps).is_none_or(|next| next.began > self.last_at)
    }
}

#[derive(Default)]
pub(super) struct Checkpoints(Mutex<Vec<Entry>>);

struct Entry {
    keys: Vec<Key>,
    /// Begin of the previews.
    from: i64,
    used_at: i64,
    checkpoint: Arc<Checkpoint>,
}

impl Checkpoints {
    pub(super) fn get(&self, rules: &[Rule], from: i64, now: i64) -> Option<Arc<Checkpoint>> {
        let keys: Vec<Key> = rules.iter().map(Key::from).collect();
        let mut entries = self.0.lock();
        let entry = entries
            .iter_mut()
            .find(|entry| entry.from == from && entry.keys == keys)?;
        entry.used_at = now;
        Some(entry.checkpoint.clone())
    }

    pub(super) fn put(&self, rules: &[Rule], from: i64, checkpoint: Arc<Checkpoint>, now: i64) {
        let keys: Vec<Key> = rules.iter().map(Key::from).collect();
        let mut entries = self.0.lock();
        entries.retain(|entry| entry.keys != keys);
        entries.push(Entry {
            keys,
            from,
            used_at: now,
            checkpoint,
        });
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.used_at));
        let mut locks = 0;
        entries.truncate(KEPT_MAX);
        entries.retain(|entry| {
            locks += entry.checkpoint.playback.locks();
            locks <= LOCKS_MAX
        });
    }

    pub(super) fn forget_unused(&self, now: i64) {
        self.0.lock().retain(|entry| now - entry.used_at < UNUSED_MS_MAX);
    }
}
