//! Locks whose fencing token decreased: the holder of an older token overwrote the record of a
//! newer holder with a live lease. Both act as holders until that lease would have ended.
//!
//! Rare, so stored outside the entries, which keeps the entry of a lock small.

use std::collections::HashMap;

use domain::escape::visible;
use domain::observation::ObservedCondition;
use domain::tick::Tick;

use super::entry::{Ends, Entry};
use super::ingest::Context;
use super::missing_reasons::FILLED;

/// Most entries; a table restored from a backup would have more, of which the first are enough.
const OVERWRITES_MAX: usize = 10_000;

#[derive(Debug)]
struct Overwrite {
    /// Generation of the holder with the older token.
    generation: Option<Box<str>>,
    /// End of the newer holder's lease.
    until: Tick,
    /// In this scan a listing may have been older than a refresh: the next scan decides.
    unsure_in: Option<u32>,
    why: String,
}

#[derive(Debug, Default)]
pub(super) struct Overwrites(HashMap<(u16, Box<[u8]>), Overwrite>);

impl Overwrites {
    /// Records that another holder replaced `old`.
    pub(super) fn record(&mut self, old: &Entry, new: &Entry, at: Tick, context: &Context) {
        let until = match old.ends {
            Ends::Leased => old.deadline,
            Ends::NoTtl | Ends::Heartbeat => Tick(i64::MAX),
            Ends::Session | Ends::Unknown => return,
        };
        let are_known = old.gaps.token == FILLED && new.gaps.token == FILLED;
        let went_back = are_known && new.token < old.token && until > at;
        if !went_back || self.0.len() >= OVERWRITES_MAX {
            return;
        }
        let owner = |entry: &Entry| {
            let owner = entry.owner.as_deref();
            owner.map_or("another owner".to_owned(), |owner| visible(owner).into_owned())
        };
        let end = match old.ends {
            Ends::NoTtl | Ends::Heartbeat => "had not released it".to_owned(),
            _ => format!("has a lease until {}", context.wall(until).format("%H:%M:%S UTC")),
        };
        let overwrite = Overwrite {
            generation: new.generation.clone(),
            until,
            unsure_in: (old.pass == context.pass).then_some(context.pass),
            why: format!(
                "{} acquired it at {} with token {} while {}, with token {}, {end}",
                owner(new),
                context.wall(at).format("%H:%M:%S UTC"),
                new.token,
                owner(old),
                old.token,
            ),
        };
        self.0.insert((old.source, old.name.clone()), overwrite);
    }

    /// Sets the condition of a lock just read, if its record was overwritten.
    pub(super) fn mark(&mut self, new: &mut Entry, at: Tick, context: &Context) {
        if self.0.is_empty() || new.condition.is_some() {
            return;
        }
        new.condition = self.condition(new, at, context).map(Box::new);
    }

    fn condition(&mut self, new: &Entry, at: Tick, context: &Context) -> Option<ObservedCondition> {
        let key = (new.source, new.name.clone());
        let overwrite = self.0.get(&key)?;
        if overwrite.generation != new.generation || overwrite.until <= at {
            self.0.remove(&key);
            return None;
        }
        let is_sure = overwrite.unsure_in != Some(context.pass);
        is_sure.then(|| ObservedCondition::DualOwner {
            why: overwrite.why.clone().into(),
        })
    }

    /// Removes a lock that is gone.
    pub(super) fn forget(&mut self, entry: &Entry) {
        if !self.0.is_empty() {
            self.0.remove(&(entry.source, entry.name.clone()));
        }
    }
}
