//! Blocker trees of one snapshot: the root of each wait, and the trees for the detail page.

use std::collections::{BTreeMap, BTreeSet};

use domain::blockers::{self, Blocker, Edge};

use super::advisory::AdvisoryKey;
use super::lock_participant::Party;
use super::snapshot::{LockRow, Snapshot};

/// Waiting sessions and their blockers, without our own.
pub(super) struct Waits<'a> {
    snapshot: &'a Snapshot,
    rows: BTreeMap<i32, &'a LockRow>,
}

impl<'a> Waits<'a> {
    pub(super) fn from_snapshot(snapshot: &'a Snapshot) -> Self {
        let rows = snapshot.waiting().into_iter().map(|row| (row.pid, row)).collect();
        Self { snapshot, rows }
    }

    /// Blockers of this session, without our own.
    pub(super) fn blockers_of(&self, pid: i32) -> Vec<i32> {
        let Some(row) = self.rows.get(&pid) else {
            return Vec::new();
        };
        row.blocked_by
            .iter()
            .copied()
            .filter(|pid| *pid != 0 && !self.snapshot.is_ours(*pid))
            .collect()
    }

    /// Follows the first blocker to a session that does not wait; in a deadlock its smallest
    /// process id.
    pub(super) fn root_of(&self, pid: i32) -> Option<i32> {
        let up = |pid: i32| self.blockers_of(pid).first().copied();
        let mut at = up(pid)?;
        let mut path = vec![pid];
        while let Some(next) = up(at) {
            if let Some(start) = path.iter().position(|passed| *passed == at) {
                return path[start..].iter().copied().min();
            }
            path.push(at);
            at = next;
        }
        Some(at)
    }

    /// The trees that contain one of `pids`.
    pub(super) fn trees(&self, pids: &[i32]) -> Vec<Blocker> {
        let involved = self.component(pids);
        let edges = involved.into_iter().map(|pid| Edge {
            node: self.node(pid),
            pid,
            waits_for: self.blockers_of(pid),
        });
        blockers::trees(edges.collect())
    }

    /// All sessions reachable from `pids`, in both directions.
    fn component(&self, pids: &[i32]) -> BTreeSet<i32> {
        let mut neighbours: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        for waiter in self.rows.keys() {
            for blocker in self.blockers_of(*waiter) {
                neighbours.entry(*waiter).or_default().push(blocker);
                neighbours.entry(blocker).or_default().push(*waiter);
            }
        }
        let mut found = BTreeSet::new();
        let mut open: Vec<i32> = pids
            .iter()
            .copied()
            .filter(|pid| neighbours.contains_key(pid))
            .collect();
        while let Some(pid) = open.pop() {
            if found.insert(pid) {
                open.extend(neighbours.get(&pid).into_iter().flatten());
            }
        }
        found
    }

    fn node(&self, pid: i32) -> Blocker {
        let waiting = self.rows.get(&pid);
        let party = self.snapshot.parties.get(&pid);
        let holds = match waiting {
            Some(row) => format!("waits for {}", described(row)),
            None => self.held_by(pid),
        };
        Blocker {
            owner_id: party.map_or_else(
                || format!("session#{pid}"),
                |party| party.owner_id().as_str().to_owned(),
            ),
            pid: (pid > 0).then_some(pid),
            doing: match party {
                Some(Party::Session(session)) => session.activity(),
                Some(Party::Prepared(_)) => {
                    "prepared, waits for COMMIT PREPARED or ROLLBACK PREPARED".to_owned()
                }
                None => "unknown: the session ended during the read".to_owned(),
            },
            holds,
            waited_ms: waiting.and_then(|row| self.snapshot.waited_ms(row)),
            blocks: Vec::new(),
        }
    }

    /// Locks of a root that others wait for.
    fn held_by(&self, pid: i32) -> String {
        let is_awaited = |held: &LockRow| {
            self.rows
                .values()
                .any(|row| row.blocked_by.contains(&pid) && row.locks_same_object(held))
        };
        let held = self
            .snapshot
            .rows
            .iter()
            .filter(|row| row.pid == pid && row.granted && is_awaited(row));
        let mut held: Vec<String> = held.map(described).collect();
        held.sort();
        held.dedup();
        if held.is_empty() {
            "unknown: released during the read".to_owned()
        } else {
            held.join(", ")
        }
    }
}

/// `ShareLock on transaction 812`.
pub(super) fn described(row: &LockRow) -> String {
    let name = row.relation.as_ref().map(|relation| match &relation.name {
        Some((schema, name)) => format!("{schema}.{name}"),
        None => format!("relation {}", relation.oid),
    });
    let target = match (row.kind.as_str(), name, &row.transaction) {
        ("advisory", _, _) => format!(
            "advisory key {}",
            AdvisoryKey::decode(row.class, row.object, row.sub).text()
        ),
        ("relation", Some(name), _) => name,
        (kind, Some(name), _) => format!("a {kind} of {name}"),
        ("transactionid", None, Some(id)) => format!("transaction {id}"),
        ("virtualxid", None, Some(id)) => format!("virtual transaction {id}"),
        (kind, None, _) => kind.to_owned(),
    };
    format!("{} on {target}", row.mode)
}
