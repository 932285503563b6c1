//! Every lock, once over, for whoever judges them all: borrowed, a chunk at a time, so that no writer waits for long.

use domain::alerts::LockSight;
use domain::backend::BackendStatus;
use domain::names::BackendName;

use super::Inventory;
use super::slab::Id;
use crate::clock::Now;

/// Entries that are looked at before the observer gets its turn.
const AT_ONCE: Id = 8 * 1024;

impl Inventory {
    /// Shows each lock of every backend that is seen now to `look`. Answers the backends that are not.
    pub fn sights(&self, now: Now, every_ms: i64, look: &mut dyn FnMut(&LockSight<'_>)) -> Vec<BackendName> {
        let mut blind = Vec::new();
        for slot in self.slots().iter() {
            let mut from: Id = 0;
            loop {
                let state = slot.read();
                let status = slot.status(&state, now);
                if status.blinds_rows() || status == BackendStatus::Starting {
                    blind.push(slot.info.name.clone());
                    break;
                }
                let shard = &state.shard;
                let last = shard.slab.last();
                for id in from..last.min(from + AT_ONCE) {
                    let Some((entry, info)) = shard
                        .slab
                        .get(id)
                        .and_then(|entry| Some((entry, shard.source(entry)?)))
                    else {
                        continue;
                    };
                    let acquired_at = shard.gaps.join((), entry.gaps.acquired_at).is_known();
                    let acquired_at = acquired_at.then_some(entry.acquired_at);
                    let offset_ms = state.offset_ms.known().copied().unwrap_or(0);
                    let backend_now = now.wall_at(entry.read_at).timestamp_millis() + offset_ms;
                    let seen_ms = entry.read_at.since(entry.first_seen);
                    look(&LockSight {
                        backend: &slot.info.name,
                        source: &info.source,
                        name: &entry.name,
                        owner: entry.owner.as_deref(),
                        safety: Some(info.safety.class),
                        facts: entry.facts(&shard.gaps, info.grain_ms, slot.info.poll_ms),
                        token: (entry.token > 0).then_some(entry.token),
                        held_ms: acquired_at.map_or(seen_ms, |at| backend_now - at).max(0),
                        acquired_at,
                        lag_ms: slot.info.poll_ms + every_ms,
                    });
                }
                if last <= from + AT_ONCE {
                    break;
                }
                from += AT_ONCE;
            }
        }
        blind
    }
}
