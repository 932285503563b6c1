//! Sessions that hold keys and that the token may not read, as where a rule denies the sessions of one node. Consul
//! leaves them out of its list, as it does sessions that have ended. A session that holds a key before the list and
//! holds it since, after the list, has not ended.

use std::collections::HashSet;

use parking_lot::Mutex;

use super::entry::HeldKey;

/// As of the last scan.
#[derive(Debug, Default)]
pub(super) struct HiddenSessions(Mutex<HashSet<String>>);

impl HiddenSessions {
    pub(super) fn known(&self) -> HashSet<String> {
        self.0.lock().clone()
    }

    pub(super) fn replace(&self, hidden: HashSet<String>) {
        *self.0.lock() = hidden;
    }
}

/// The sessions of `before` with a key that they still hold in `after`.
pub(super) fn still_holding(before: &[&HeldKey], after: &[HeldKey]) -> HashSet<String> {
    let after: HashSet<(&str, &str, u64)> = after.iter().map(identity).collect();
    let same = before.iter().filter(|held| after.contains(&identity(held)));
    same.map(|held| held.session.clone()).collect()
}

fn identity(held: &HeldKey) -> (&str, &str, u64) {
    (&held.key, &held.session, held.lock_index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(key: &str, session: &str, lock_index: u64) -> HeldKey {
        HeldKey {
            key: key.to_owned(),
            session: session.to_owned(),
            lock_index,
            create_index: 1,
            modify_index: 1,
            flags: 0,
        }
    }

    #[test]
    fn a_session_that_holds_its_key_before_and_after_has_not_ended() {
        // One of two keys still held; a key released; a key of another session; a key acquired again.
        let before = [
            held("a", "s1", 1),
            held("b", "s1", 1),
            held("c", "s2", 1),
            held("d", "s3", 1),
            held("e", "s4", 1),
        ];
        let after = [held("b", "s1", 1), held("d", "s5", 2), held("e", "s4", 2)];
        let before: Vec<&HeldKey> = before.iter().collect();
        assert_eq!(still_holding(&before, &after), HashSet::from(["s1".to_owned()]));
    }
}
