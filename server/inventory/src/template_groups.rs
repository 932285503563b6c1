//! Locks of one backend by the template of their names: current held locks and waiters, and
//! both as integrals over the observed time. Updated with each change, so that no reader has to
//! count.

use std::collections::HashMap;
use std::sync::Arc;

use domain::history::template::template;
use domain::tick::Tick;

/// Templates of one backend that are counted separately; the others share one group.
pub const GROUPS_MAX: usize = 200;
/// Name of the shared group. No template equals it: it has a space.
pub const OTHER: &str = "other names";
/// A template without locks frees its group after this long, in milliseconds.
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
    dual_owners: u64,
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
    /// Times that two owners of one lock were observed.
    pub dual_owners: u64,
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
            dual_owners: 0,
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
    pub(super) fn group_for(&mut self, name: &[u8], at: Tick) -> GroupId {
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

    pub(super) fn count_dual_owner(&mut self, id: GroupId) {
        self.all[usize::from(id)].dual_owners += 1;
    }

    /// Reads the integrals up to now. While the backend is unreachable, the time since the last reading does not count.
    pub(super) fn read(&mut self, now: Tick, is_blind: bool) -> Vec<GroupReading> {
        let readings = self.all.iter_mut().filter_map(|group| {
            if group.held == 0 {
                // Idle time counts from the last removal.
            } else if is_blind {
                group.since = group.since.max(now);
            } else {
                group.advance(now);
            }
            let is_fresh = group.held == 0 && group.held_ms == 0 && group.dual_owners == 0;
            (!is_fresh).then(|| GroupReading {
                template: group.text.clone(),
                held: group.held,
                waiting: group.waiting,
                held_ms: group.held_ms,
                waiting_ms: group.waiting_ms,
                dual_owners: group.dual_owners,
            })
        });
        readings.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integrals_count_observed_time_once_and_gaps_never() {
        // Two locks of one kind for a second each, one of them with three waiters; then
        // unobserved; then one ends.
        let mut groups = Groups::default();
        let id = groups.group_for(b"jobs/1", Tick(0));
        assert_eq!(groups.group_for(b"jobs/2", Tick(0)), id);
        groups.add(id, 0, Tick(0));
        groups.add(id, 3, Tick(1_000));
        let at = |groups: &mut Groups, ms, is_blind| groups.read(Tick(ms), is_blind).pop().unwrap();
        let sums = at(&mut groups, 2_000, false);
        assert_eq!((sums.held, sums.held_ms, sums.waiting_ms), (2, 3_000, 3_000));
        assert_eq!(at(&mut groups, 60_000, true).held_ms, 3_000);
        groups.remove(id, 3, Tick(61_000));
        let sums = at(&mut groups, 61_000, false);
        assert_eq!((sums.held, sums.held_ms, sums.waiting_ms), (1, 5_000, 6_000));
    }

    #[test]
    fn templates_beyond_the_cap_share_one_group_until_one_is_idle() {
        // One kind more than there are groups; later, with an empty group, it gets its own.
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
            let id = groups.group_for(letters(number).as_bytes(), Tick(0));
            groups.add(id, 0, Tick(0));
        }
        assert_eq!(groups.group_for(b"one-more", Tick(0)), 0);
        let first = groups.group_for(letters(0).as_bytes(), Tick(0));
        groups.remove(first, 0, Tick(1_000));
        assert_eq!(groups.group_for(b"one-more", Tick(2_000)), 0);
        assert_eq!(groups.group_for(b"one-more", Tick(2_000 + IDLE_MS)), first);
        assert_eq!(&*groups.text(first), "one-more");
    }
}
