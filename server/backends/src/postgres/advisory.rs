//! Advisory locks: rows of `pg_locks` grouped by database and key.

use std::collections::BTreeMap;

use domain::fnv1a::fnv1a_64;
use domain::generation::Generation;
use domain::names::{OwnerId, Resource, Source};
use domain::observation::{Lifetime, ObservedCondition, ObservedLock, Sharer};
use domain::reported::Reported;

use super::lock_participant::{Level, Party};
use super::pooler;
use super::snapshot::{LockRow, Snapshot};

/// Sharers whose generations are written out; more are represented by their number and a hash.
const GENERATIONS_SHOWN: usize = 4;

/// Both forms of a key. `pg_locks` shows a bigint as two halves with `objsubid` 1, two ints
/// with `objsubid` 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum AdvisoryKey {
    One(i64),
    Two(i32, i32),
}

impl AdvisoryKey {
    pub(super) fn decode(class: u32, object: u32, sub: i32) -> Self {
        if sub == 2 {
            Self::Two(class.cast_signed(), object.cast_signed())
        } else {
            Self::One((u64::from(class) << 32 | u64::from(object)).cast_signed())
        }
    }

    pub(super) fn text(self) -> String {
        match self {
            Self::One(key) => key.to_string(),
            Self::Two(first, second) => format!("{first}:{second}"),
        }
    }
}

/// All rows of a snapshot about one key.
#[derive(Debug, Clone)]
pub(super) struct Group<'a> {
    pub(super) database: String,
    pub(super) key: AdvisoryKey,
    /// One row per session, longest-lived session first.
    pub(super) holders: Vec<&'a LockRow>,
    /// In order of arrival.
    pub(super) waiters: Vec<&'a LockRow>,
}

pub(super) fn source() -> Source {
    Source::fixed("advisory")
}

/// The name of one key of one database.
pub(super) fn resource(database: &str, key: AdvisoryKey) -> Resource {
    Resource::from(format!("advisory:{database}:{}", key.text()).as_str())
}

pub(super) fn groups(snapshot: &Snapshot) -> Vec<Group<'_>> {
    let mut groups: BTreeMap<(String, AdvisoryKey), Group<'_>> = BTreeMap::new();
    let granted = snapshot
        .rows
        .iter()
        .filter(|row| row.granted && !snapshot.is_ours(row.pid));
    for row in granted
        .chain(snapshot.waiting())
        .filter(|row| row.kind == "advisory")
    {
        let database = row.database.clone().unwrap_or_else(|| "unknown".to_owned());
        let key = AdvisoryKey::decode(row.class, row.object, row.sub);
        let group = groups.entry((database.clone(), key)).or_insert_with(|| Group {
            database,
            key,
            holders: Vec::new(),
            waiters: Vec::new(),
        });
        let side = if row.granted {
            &mut group.holders
        } else {
            &mut group.waiters
        };
        // A session may hold one key both shared and exclusive.
        if !side.iter().any(|other| other.pid == row.pid) {
            side.push(row);
        }
    }
    let mut groups: Vec<Group<'_>> = groups.into_values().collect();
    for group in &mut groups {
        group
            .holders
            .sort_by_key(|row| (started(snapshot, row.pid), row.pid));
    }
    groups
}

fn started(snapshot: &Snapshot, pid: i32) -> Option<chrono::DateTime<chrono::Utc>> {
    match snapshot.parties.get(&pid)? {
        Party::Session(session) => session.backend_start,
        Party::Prepared(prepared) => Some(prepared.prepared),
    }
}

impl Group<'_> {
    pub(super) fn resource(&self) -> Resource {
        resource(&self.database, self.key)
    }

    pub(super) fn lock(&self, snapshot: &Snapshot) -> ObservedLock {
        let first = self
            .holders
            .first()
            .and_then(|row| snapshot.parties.get(&row.pid));
        let no_holder = "the session ended during the read";
        ObservedLock {
            source: source(),
            resource: self.resource(),
            owner: first.map_or(Reported::unknown(no_holder), |party| {
                Reported::Value(party.owner_id())
            }),
            owner_count: u32::try_from(self.holders.len()).unwrap_or(u32::MAX),
            sharers: self.sharers(snapshot).unwrap_or_default(),
            lease_id: Reported::absent("an advisory lock has no lease"),
            generation: self.generation(snapshot),
            fencing_token: Reported::absent("advisory locks have no fencing tokens"),
            acquired_at: first.map_or(Reported::unknown(no_holder), Party::acquired_at),
            renewed_at: Reported::absent("an advisory lock is not renewed"),
            lifetime: Lifetime::Session {
                why: "it lives as long as its session or transaction: there is no lease to renew".into(),
            },
            waiter_count: Reported::Value(u32::try_from(self.waiters.len()).unwrap_or(u32::MAX)),
            oldest_waiter_ms: self
                .waiters
                .iter()
                .filter_map(|row| snapshot.waited_ms(row))
                .max(),
            line: snapshot.wait_queue(&self.waiters, Party::generation),
            condition: self.condition(snapshot),
        }
    }

    pub(super) fn owners(&self, snapshot: &Snapshot) -> Vec<OwnerId> {
        let owners = self
            .holders
            .iter()
            .filter_map(|row| snapshot.parties.get(&row.pid));
        owners.map(Party::owner_id).collect()
    }

    /// `None`: one session holds it, or the start of one is unknown.
    fn sharers(&self, snapshot: &Snapshot) -> Option<Vec<Sharer>> {
        let sharer = |row: &&LockRow| {
            let party = snapshot.parties.get(&row.pid)?;
            Some(Sharer {
                generation: party.generation().known()?.clone(),
                owner: Some(party.owner_id()),
                token: None,
            })
        };
        let all: Option<Vec<Sharer>> = self.holders.iter().map(sharer).collect();
        all.filter(|all| all.len() > 1)
    }

    /// All sharers: a release is bound to every one of them.
    fn generation(&self, snapshot: &Snapshot) -> Reported<Generation> {
        let mut generations = Vec::with_capacity(self.holders.len());
        for row in &self.holders {
            match snapshot.parties.get(&row.pid).map(Party::generation) {
                Some(Reported::Value(generation)) => generations.push(generation.as_str().to_owned()),
                Some(unknown) => return unknown,
                None => return Reported::unknown("the session ended during the read"),
            }
        }
        let rest = generations.split_off(generations.len().min(GENERATIONS_SHOWN));
        let mut text = generations.join("+");
        if !rest.is_empty() {
            text.push_str(&format!(
                "+{}:{:016x}",
                rest.len(),
                fnv1a_64(rest.join("+").bytes())
            ));
        }
        Reported::Value(Generation::new(text))
    }

    fn condition(&self, snapshot: &Snapshot) -> Option<ObservedCondition> {
        let parties = || {
            self.holders
                .iter()
                .filter_map(|row| snapshot.parties.get(&row.pid))
        };
        parties().find_map(Party::orphaned).or_else(|| {
            parties().find_map(|party| match party {
                Party::Session(session) if party.level() == Level::Session => {
                    pooler::find_leak(session, snapshot.now?)
                }
                Party::Session(_) | Party::Prepared(_) => None,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advisory_keys_decode_at_every_edge() {
        // The halves as pg_locks shows them for each form.
        assert_eq!(AdvisoryKey::decode(0, 42, 1), AdvisoryKey::One(42));
        assert_eq!(
            AdvisoryKey::decode(0xffff_ffff, 0xffff_ffff, 1),
            AdvisoryKey::One(-1)
        );
        assert_eq!(AdvisoryKey::decode(0x8000_0000, 0, 1), AdvisoryKey::One(i64::MIN));
        assert_eq!(
            AdvisoryKey::decode(0x8000_0000, 0xffff_ffff, 2),
            AdvisoryKey::Two(i32::MIN, -1)
        );
        assert_eq!(AdvisoryKey::decode(7, 9, 2).text(), "7:9");
    }
}
