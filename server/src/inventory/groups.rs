//! Locks of one backend by the template of their names: how many are held and waited for now, and both as integrals over
//! the time that was watched. Kept with each change, so that nobody has to count.

use std::collections::HashMap;
use std::sync::Arc;

use domain::history::template::template;
use domain::observation::Tick;

/// Templates of one backend that are told apart; the others are counted together.
pub const GROUPS_MAX: usize = 200;
/// What the others are called. No name has this template: it has a space.
pub const OTHER: &str = "other names";
/// A template without locks gives its place to a new one after this long, in milliseconds.
const IDLE_MS: i64 = 600_000;

/// One byte: there may be a million locks.
pub(super) type GroupId = u8;

#[derive(Debug)]
pub(super) struct Groups {
    all: Vec<Group>,
    by_text: HashMap<Arc<str>, GroupId>,
}

#[derive(Debug)]
struct Group {
    text: Arc<str>,
    held: u64,
    waiting: u64,
    held_ms: u64,
    waiting_ms: u64,
    believers: u64,
    since: Tick,
}

/// Integrals and counts since the process began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupReading {
    pub template: Arc<str>,
    pub held: u64,
    pub waiting: u64,
    pub held_ms: u64,
    pub waiting_ms: u64,
    /// Times that two owners of one lock were seen.
    pub believers: u64,
}

impl Default for Groups {
    fn default() -> Self {
        let other: Arc<str> = OTHER.into();
        Self {
            all: vec![Group::new(other, Tick(0))],
            by_text: HashMap::new(),
        }
    }
}

impl Group {
    const fn new(text: Arc<str>, since: Tick) -> Self {
        Self {
            text,
            held: 0,
            waiting: 0,
            held_ms: 0,
            waiting_ms: 0,
            believers: 0,
            since,
        }
    }

    fn advance(&mut self, at: Tick) {
        // Readings of two batches may overlap: time is counted once.
        let passed = u64::try_from(at.since(self.since)).unwrap_or(0);
        self.held_ms += self.held * passed;
        self.waiting_ms += self.waiting * passed;
        self.since = self.since.max(at);
    }
}

impl Groups {
    pub(super) fn of(&mut self, name: &[u8], at: Tick) -> GroupId {
        let text = template(name);
        if let Some(id) = self.by_text.get(text.as_str()) {
            return *id;
        }
        let text: Arc<str> = text.into();
        let fresh = Group::new(text.clone(), at);
        let id = if self.all.len() <= GROUPS_MAX {
            self.all.push(fresh);
            self.all.len() - 1
        } else {
            let is_idle = |group: &Group| group.held == 0 && at.since(group.since) > IDLE_MS;
            let Some(id) = self.all.iter().skip(1).position(is_idle).map(|place| place + 1) else {
                return 0;
            };
            let old = std::mem::replace(&mut self.all[id], fresh);
            self.by_text.remove(&old.text);
            id
        };
        let id = GroupId::try_from(id).unwrap_or(0);
        self.by_text.insert(text, id);
        id
    }

    pub(super) fn text(&self, id: GroupId) -> Arc<str> {
        self.all[usize::from(id)].text.clone()
    }

    pub(super) fn add(&mut self, id: GroupId, waiters: u32, at: Tick) {
        let group = &mut self.all[usize::from(id)];
        group.advance(at);
        group.held += 1;
        group.waiting += u64::from(waiters);
    }

    pub(super) fn remove(&mut self, id: GroupId, waiters: u32, at: Tick) {
        let group = &mut self.all[usize::from(id)];
        group.advance(at);
        group.held = group.held.saturating_sub(1);
        group.waiting = group.waiting.saturating_sub(u64::from(waiters));
    }

    pub(super) fn believers(&mut self, id: GroupId) {
        self.all[usize::from(id)].believers += 1;
    }

    /// Up to now; when it is not known what holds, the time since the last look does not count.
    pub(super) fn read(&mut self, now: Tick, is_blind: bool) -> Vec<GroupReading> {
        let readings = self.all.iter_mut().filter_map(|group| {
            if group.held == 0 {
                // Idle time counts from when it was emptied.
            } else if is_blind {
                group.since = group.since.max(now);
            } else {
                group.advance(now);
            }
            let is_fresh = group.held == 0 && group.held_ms == 0 && group.believers == 0;
            (!is_fresh).then(|| GroupReading {
                template: group.text.clone(),
                held: group.held,
                waiting: group.waiting,
                held_ms: group.held_ms,
                waiting_ms: group.waiting_ms,
                believers: group.believers,
            })
        });
        readings.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integrals_count_watched_time_once_and_blind_time_never() {
        // Two locks of one kind for a second each, one of them with three waiters; then blind; then one goes.
        let mut groups = Groups::default();
        let id = groups.of(b"jobs/1", Tick(0));
        assert_eq!(groups.of(b"jobs/2", Tick(0)), id);
        groups.add(id, 0, Tick(0));
        groups.add(id, 3, Tick(1_000));
        let at = |groups: &mut Groups, ms, is_blind| groups.read(Tick(ms), is_blind).pop().unwrap();
        let told = at(&mut groups, 2_000, false);
        assert_eq!((told.held, told.held_ms, told.waiting_ms), (2, 3_000, 3_000));
        assert_eq!(at(&mut groups, 60_000, true).held_ms, 3_000);
        groups.remove(id, 3, Tick(61_000));
        let told = at(&mut groups, 61_000, false);
        assert_eq!((told.held, told.held_ms, told.waiting_ms), (1, 5_000, 6_000));
    }

    #[test]
    fn templates_beyond_the_cap_are_counted_together_until_a_place_is_idle() {
        // One more kind than there are places; later, with an empty one, it gets its own.
        let mut groups = Groups::default();
        let letters = |number: usize| {
            let letter = |n: usize| char::from(b'a' + u8::try_from(n % 26).unwrap());
            format!(
                "{}{}{}",
                letter(number / 676),
                letter(number / 26),
                letter(number)
            )
        };
        for number in 0..GROUPS_MAX {
            let id = groups.of(letters(number).as_bytes(), Tick(0));
            groups.add(id, 0, Tick(0));
        }
        assert_eq!(groups.of(b"one-more", Tick(0)), 0);
        let first = groups.of(letters(0).as_bytes(), Tick(0));
        groups.remove(first, 0, Tick(1_000));
        assert_eq!(groups.of(b"one-more", Tick(2_000)), 0);
        assert_eq!(groups.of(b"one-more", Tick(2_000 + IDLE_MS)), first);
        assert_eq!(&*groups.text(first), "one-more");
    }
}
