//! Lock-delays: which keys were held at the last reading, by which sessions, and which of them
//! no session can acquire yet because their session was invalidated. Consul does not report a
//! lock-delay, so it is counted from the last reading that saw the key held: never too long.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use domain::names::{OwnerId, Resource};
use domain::tick::Tick;
use parking_lot::Mutex;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LockDelay {
    pub(super) owner: OwnerId,
    pub(super) length_ms: i64,
    pub(super) ends_at: Tick,
}

/// A key as it was held at a reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Holding {
    /// One text for all keys of a session.
    pub(super) session: Arc<str>,
    pub(super) owner: OwnerId,
    /// 0: the session has none, or could not be read.
    pub(super) lock_delay_ms: u32,
    pub(super) read_at: Tick,
}

#[derive(Debug, Default)]
pub(super) struct LockDelays(Mutex<Keys>);

#[derive(Debug, Default)]
struct Keys {
    held: HashMap<Resource, Holding>,
    delayed: HashMap<Resource, LockDelay>,
}

impl LockDelays {
    /// All keys that a scan found held. `is_read` tells whether it would have found a key, `is_gone` whether a session
    /// has ended.
    pub(super) fn replace(
        &self,
        held: HashMap<Resource, Holding>,
        is_read: impl Fn(&Resource) -> bool,
        is_gone: impl Fn(&str) -> bool,
    ) {
        let mut keys = self.0.lock();
        let before = std::mem::replace(&mut keys.held, held);
        for (key, holding) in before {
            if keys.held.contains_key(&key) {
                continue;
            }
            if !is_read(&key) {
                keys.held.insert(key, holding);
            } else if is_gone(&holding.session) {
                keys.delay(key, &holding);
            }
        }
        let Keys { held, delayed } = &mut *keys;
        delayed.retain(|key, _| !held.contains_key(key));
    }

    /// One key, read by name: held, or not.
    pub(super) fn update(&self, key: &Resource, now: Option<Holding>, is_gone: impl Fn(&str) -> bool) {
        let mut keys = self.0.lock();
        match now {
            Some(holding) => {
                keys.delayed.remove(key);
                keys.held.insert(key.clone(), holding);
            }
            None => {
                if let Some(holding) = keys.held.remove(key).filter(|holding| is_gone(&holding.session)) {
                    keys.delay(key.clone(), &holding);
                }
            }
        }
    }

    /// The sessions that held a key at the last reading.
    pub(super) fn sessions(&self) -> HashSet<Arc<str>> {
        let keys = self.0.lock();
        keys.held
            .values()
            .map(|holding| holding.session.clone())
            .collect()
    }

    /// Owners by session. A session keeps its name and node, so they are valid where it cannot be read any more.
    pub(super) fn owners(&self) -> HashMap<Arc<str>, OwnerId> {
        let keys = self.0.lock();
        keys.held
            .values()
            .map(|holding| (holding.session.clone(), holding.owner.clone()))
            .collect()
    }

    /// The owner of a session that holds `key`, from `key` or another one.
    pub(super) fn owner_of(&self, session: &str, key: &Resource) -> Option<OwnerId> {
        let keys = self.0.lock();
        let is_same = |holding: &&Holding| &*holding.session == session;
        let last = keys.held.get(key).filter(is_same);
        let last = last.or_else(|| keys.held.values().find(is_same));
        last.map(|holding| holding.owner.clone())
    }

    /// The session that held it at the last reading.
    pub(super) fn last_session(&self, key: &Resource) -> Option<Arc<str>> {
        self.0.lock().held.get(key).map(|holding| holding.session.clone())
    }

    /// Other keys of the same session, at the last scan.
    pub(super) fn keys_of(&self, session: &str, but: &Resource) -> Vec<Resource> {
        let keys = self.0.lock();
        let same = keys
            .held
            .iter()
            .filter(|(key, holding)| &*holding.session == session && *key != but);
        let mut found: Vec<Resource> = same.map(|(key, _)| key.clone()).collect();
        found.sort();
        found
    }

    /// Keys in their lock-delay, with the time left; those that are over are forgotten.
    pub(super) fn running(&self, now: Tick) -> Vec<(Resource, LockDelay, i64)> {
        let mut keys = self.0.lock();
        keys.delayed.retain(|_, delay| delay.ends_at > now);
        let running = keys.delayed.iter();
        running
            .map(|(key, delay)| (key.clone(), delay.clone(), delay.ends_at.since(now)))
            .collect()
    }

    pub(super) fn running_for(&self, key: &Resource, now: Tick) -> Option<(LockDelay, i64)> {
        let keys = self.0.lock();
        let delay = keys.delayed.get(key).filter(|delay| delay.ends_at > now)?;
        Some((delay.clone(), delay.ends_at.since(now)))
    }
}

impl Keys {
    fn delay(&mut self, key: Resource, holding: &Holding) {
        let length_ms = i64::from(holding.lock_delay_ms);
        if length_ms > 0 {
            let delay = LockDelay {
                owner: holding.owner.clone(),
                length_ms,
                ends_at: holding.read_at.plus(length_ms),
            };
            self.delayed.insert(key, delay);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holding(session: &str, read_at: i64) -> Holding {
        Holding {
            session: session.into(),
            owner: OwnerId::new("w-1"),
            lock_delay_ms: 15_000,
            read_at: Tick(read_at),
        }
    }

    #[test]
    fn only_an_invalidated_session_starts_a_lock_delay() {
        // One key released by a living session, one lost with its session, one taken by another.
        let delays = LockDelays::default();
        let key = |name: &str| Resource::from(name);
        let held = [("released", "s1"), ("lost", "s2"), ("taken", "s2")];
        let held = held.map(|(name, session)| (key(name), holding(session, 1_000)));
        delays.replace(HashMap::from(held), |_| true, |_| false);
        let now = HashMap::from([(key("taken"), holding("s3", 2_000))]);
        delays.replace(now, |_| true, |session| session == "s2");
        let running = delays.running(Tick(3_000));
        assert_eq!(running.len(), 1);
        // From the last reading that saw it held.
        assert_eq!((&running[0].0, running[0].2), (&key("lost"), 13_000));
        delays.update(&key("lost"), Some(holding("s3", 4_000)), |_| false);
        assert_eq!(delays.running_for(&key("lost"), Tick(4_000)), None);
        delays.update(&key("lost"), None, |_| true);
        assert!(delays.running_for(&key("lost"), Tick(18_999)).is_some());
        assert_eq!(delays.running(Tick(19_000)), []);
    }

    #[test]
    fn a_partial_scan_starts_and_ends_lock_delays_of_what_it_read() {
        // Two keys lost with their session, one of them read; then the delayed key is held again, as after a change of
        // Consul's leader.
        let delays = LockDelays::default();
        let (read, unread) = (Resource::from("read"), Resource::from("unread"));
        let held = [&read, &unread].map(|key| (key.clone(), holding("s1", 1_000)));
        delays.replace(HashMap::from(held), |_| true, |_| false);
        delays.replace(HashMap::new(), |key| *key == read, |_| true);
        let running: Vec<Resource> = delays
            .running(Tick(2_000))
            .into_iter()
            .map(|(key, ..)| key)
            .collect();
        assert_eq!(running, std::slice::from_ref(&read));
        assert_eq!(delays.last_session(&unread).as_deref(), Some("s1"));
        let now = HashMap::from([(read.clone(), holding("s2", 3_000))]);
        delays.replace(now, |key| *key == read, |_| true);
        assert_eq!(delays.running(Tick(3_000)), []);
    }
}
