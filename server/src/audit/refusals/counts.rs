//! Counts of refused requests and when each is due. Knows no store.

use std::collections::HashMap;

use domain::audit::Action;
use domain::duration::millis;
use domain::tick::Tick;
use serde_json::{Map, Value};

use super::super::{ANONYMOUS, Actor, Entry, Origin};
use super::{BURST, ENTRY_INTERVAL, NAMES_MAX, SOURCE_ENTRY_INTERVAL, SOURCES_MAX};
use runtime::client_network::ClientNetwork;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    source: Source,
    action: Action,
    outcome: String,
    kind: &'static str,
}

impl Key {
    fn new(entry: &Entry, kind: &'static str) -> Self {
        Self {
            source: Source::from_entry(entry),
            action: entry.action,
            outcome: entry.outcome.clone(),
            kind,
        }
    }
}

/// Who sent a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Source {
    Anonymous(ClientNetwork),
    /// By id.
    Principal(String),
}

impl Source {
    fn from_entry(entry: &Entry) -> Self {
        match entry.actor.id.as_str() {
            ANONYMOUS => Self::Anonymous(entry.origin.network()),
            id => Self::Principal(id.to_owned()),
        }
    }

    /// The actor of an entry about several of them.
    const fn several(&self) -> &'static str {
        match self {
            Self::Anonymous(_) => ANONYMOUS,
            Self::Principal(_) => "several",
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    by_key: HashMap<Key, Count>,
    /// Sources beyond the limit.
    others: Others,
    /// Time at which the full allowance is restored (GCRA).
    full_at: Option<Tick>,
}

/// Requests of one source since its last entry.
#[derive(Debug)]
struct Count {
    written_at: Tick,
    pending: u64,
    /// The latest entry, which is written as an example.
    last: Entry,
    names: Vec<String>,
}

#[derive(Debug, Default)]
struct Others {
    written_at: Option<Tick>,
    pending: u64,
    sources: u64,
    actor: &'static str,
}

/// Member of `after` that holds the count.
const TIMES: &str = "times";
const NAMES: &str = "names";
const SOURCES: &str = "sources";

impl Counts {
    /// Returns the entry if it is to be written now.
    pub(super) fn add(&mut self, entry: Entry, kind: &'static str, now: Tick) -> Option<Entry> {
        let key = Key::new(&entry, kind);
        let is_first = !self.by_key.contains_key(&key);
        if is_first && self.by_key.len() >= SOURCES_MAX {
            self.others.add(1, &key.source);
            return None;
        }
        if is_first && self.may_write(now) {
            self.by_key.insert(key, Count::new(entry.clone(), now, 0));
            return Some(entry);
        }
        self.defer_as(key, entry, now);
        None
    }

    /// Counts an entry that is written later.
    pub(super) fn defer(&mut self, entry: Entry, kind: &'static str, now: Tick) {
        let key = Key::new(&entry, kind);
        if self.by_key.contains_key(&key) || self.by_key.len() < SOURCES_MAX {
            self.defer_as(key, entry, now);
        } else {
            self.others.add(1, &key.source);
        }
    }

    fn defer_as(&mut self, key: Key, entry: Entry, now: Tick) {
        match self.by_key.get_mut(&key) {
            Some(count) => count.add(entry),
            None => {
                self.by_key.insert(key, Count::new(entry, now, 1));
            }
        }
    }

    /// Entries whose interval has ended.
    pub(super) fn due(&mut self, now: Tick) -> Vec<(Entry, &'static str)> {
        let is_due = |then: Tick| now.since(then) >= millis(SOURCE_ENTRY_INTERVAL);
        let keys: Vec<Key> = self
            .by_key
            .iter()
            .filter(|(_, count)| is_due(count.written_at))
            .map(|(key, _)| key.clone())
            .collect();
        let mut entries = Vec::new();
        for key in keys {
            let Some(count) = self.by_key.remove(&key) else {
                continue;
            };
            if count.pending == 0 {
                continue;
            }
            if self.may_write(now) {
                let kind = key.kind;
                self.by_key.insert(key, Count::new(count.last.clone(), now, 0));
                entries.push((count.entry(), kind));
            } else {
                self.others.add(count.pending, &key.source);
            }
        }
        if self.others.pending > 0 && self.others.written_at.is_none_or(is_due) {
            self.others.written_at = Some(now);
            entries.extend(self.others.take());
        }
        entries
    }

    /// All pending entries, at the end of the process.
    pub(super) fn drain(&mut self) -> Vec<(Entry, &'static str)> {
        let counts = self.by_key.drain().filter(|(_, count)| count.pending > 0);
        let mut entries: Vec<_> = counts.map(|(key, count)| (count.entry(), key.kind)).collect();
        let excess = entries.split_off(entries.len().min(BURST as usize));
        for (entry, _) in excess {
            self.others.add(times(&entry), &Source::from_entry(&entry));
        }
        entries.extend(self.others.take());
        entries
    }

    /// Restores an entry that could not be written: its count is added to the next one of its source.
    pub(super) fn put_back(&mut self, entry: Entry, kind: &'static str) {
        let number = times(&entry);
        let key = Key::new(&entry, kind);
        match self.by_key.get_mut(&key) {
            Some(count) => count.pending += number,
            None => self.others.add(number, &key.source),
        }
    }

    /// Takes one entry from the allowance, if there is one.
    fn may_write(&mut self, now: Tick) -> bool {
        let full_at = self.full_at.map_or(now.0, |tick| tick.0.max(now.0)) + millis(ENTRY_INTERVAL);
        if full_at - now.0 > millis(ENTRY_INTERVAL) * i64::from(BURST) {
            return false;
        }
        self.full_at = Some(Tick(full_at));
        true
    }
}

impl Count {
    fn new(entry: Entry, now: Tick, pending: u64) -> Self {
        let mut count = Self {
            written_at: now,
            pending,
            names: Vec::new(),
            last: entry,
        };
        if pending > 0 {
            count.count_name();
        }
        count
    }

    fn add(&mut self, entry: Entry) {
        self.pending += 1;
        self.last = entry;
        self.count_name();
    }

    fn count_name(&mut self) {
        let actor = &self.last.actor;
        // The guessed user name; for other requests it equals the id.
        if actor.name != actor.id && self.names.len() < NAMES_MAX && !self.names.contains(&actor.name) {
            self.names.push(actor.name.clone());
        }
    }

    /// The latest entry with the total count.
    fn entry(self) -> Entry {
        let Self {
            pending, names, last, ..
        } = self;
        if pending == 1 {
            return last;
        }
        let mut after = match last.after {
            Some(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        after.insert(TIMES.to_owned(), pending.into());
        if names.len() > 1 {
            after.insert(NAMES.to_owned(), names.into());
        }
        Entry {
            after: Some(after.into()),
            ..last
        }
    }
}

impl Others {
    fn add(&mut self, number: u64, source: &Source) {
        self.pending += number;
        self.sources += 1;
        self.actor = source.several();
    }

    fn take(&mut self) -> Option<(Entry, &'static str)> {
        let (pending, sources) = (
            std::mem::take(&mut self.pending),
            std::mem::take(&mut self.sources),
        );
        if pending == 0 {
            return None;
        }
        let actor = Actor {
            id: self.actor.to_owned(),
            name: self.actor.to_owned(),
            role: None,
        };
        let after = Map::from_iter([
            (TIMES.to_owned(), pending.into()),
            (SOURCES.to_owned(), sources.into()),
        ]);
        let entry = Entry {
            after: Some(after.into()),
            ..Entry::new(Action::Deny, "several", actor, Origin::default())
        };
        Some((entry, "others"))
    }
}

/// Number of requests that an entry represents.
fn times(entry: &Entry) -> u64 {
    let after = entry.after.as_ref();
    after.and_then(|after| after.get(TIMES)?.as_u64()).unwrap_or(1)
}

#[cfg(test)]
mod tests;
