//! What this process read or wrote last of resources without a line. A batch about such resources alone reads nothing: it is
//! decided on this, and `lease_save` holds it against the rows.
//!
//! **Invariant:** a batch is decided on what is remembered only where no moment within [`MARGIN_MS`] would decide it
//! otherwise, because the moment is reckoned and not read. It is reckoned no earlier than it is, so that a lease never gets
//! less than it asked for.

use std::collections::{HashMap, HashSet};

use domain::lease::{ResourceState, StoreTime};
use domain::names::Resource;
use domain::observation::Tick;

use super::load::{Looked, Seen};
use super::steady::{STEP_MS, Steady};
use crate::lease::batch::Held;
use crate::lease::store::asked::Asked;
use crate::lease::store::known::Known;

/// What is written may be a step off, and what was reckoned another.
const MARGIN_MS: i64 = 2 * STEP_MS;

pub(super) struct Remembered {
    known: Known,
    /// Of all tokens, as it was read last.
    floor: Option<i64>,
}

/// What a batch leaves behind.
pub(super) struct After {
    pub(super) floor: i64,
    /// Resources that have more to them than their states tell.
    pub(super) more: HashSet<Resource>,
    pub(super) states: HashMap<Resource, Held>,
}

impl Default for Remembered {
    fn default() -> Self {
        Self {
            known: Known::new(),
            floor: None,
        }
    }
}

impl Remembered {
    /// All that is asked, if all of it is remembered. What is looked for here is forgotten, until it is [kept](Self::keep):
    /// of two batches at a time about one resource the second one reads.
    pub(super) fn recall(&mut self, asked: Asked, at: Tick, steady: &Steady) -> Option<Looked> {
        let floor = self.floor?;
        let now = steady.reckon(at)?;
        // A key is looked for in the tables: another replica may have bound it.
        if !asked.keys.is_empty() {
            return None;
        }
        let (mut loaded, missing) = self.known.recall(asked);
        let states = loaded.resources.values().map(|held| &held.state);
        if !missing.is_empty() || !states.into_iter().all(|state| is_clear(state, now)) {
            return None;
        }
        let mut seen = Seen {
            floor,
            ..Seen::default()
        };
        for (resource, held) in &loaded.resources {
            seen.note_state(resource.text(), &held.state);
        }
        loaded.now = now;
        loaded.floor = floor.unsigned_abs();
        Some(Looked {
            read_at: at,
            loaded,
            seen,
        })
    }

    /// After the commit.
    pub(super) fn keep(&mut self, after: After) {
        let After { floor, more, states } = after;
        self.floor = Some(floor);
        let states = states.into_iter();
        self.known
            .keep(states.filter(|(resource, held)| held.queue.is_empty() && !more.contains(resource)));
    }
}

/// Whether it is the same state at every moment near this one.
fn is_clear(state: &ResourceState, now: StoreTime) -> bool {
    let unended = state.lease.as_ref().filter(|lease| lease.ending.is_none());
    unended.is_none_or(|lease| lease.expires_at.since(now) > MARGIN_MS)
        && state
            .locked_until
            .is_none_or(|until| until.since(now).abs() > MARGIN_MS)
}

#[cfg(test)]
mod tests;
