//! Sessions that wait for rows and tables: one lock per relation with a blocked session.

use std::collections::{BTreeMap, BTreeSet};

use domain::generation::Generation;
use domain::names::{OwnerId, Resource, Source};
use domain::observation::{Lifetime, ObservedLock};
use domain::reported::Reported;

use super::blocker_tree::Waits;
use super::lock_participant::{self, Party};
use super::snapshot::{LockRow, Relation, Snapshot};

/// The object that a session waits for, as far as known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Named(String, String),
    /// In another database, whose catalog is not readable.
    Oid(u32),
    /// A row of an unknown table.
    Transaction(String),
}

#[derive(Debug, Clone)]
pub(super) struct Group<'a> {
    database: String,
    target: Target,
    /// In order of arrival.
    pub(super) waiters: Vec<&'a LockRow>,
    /// Root blockers, that of the oldest waiter first.
    pub(super) roots: Vec<i32>,
}

/// Database name for tables shared by all databases.
pub(super) const SHARED: &str = "shared";

pub(super) fn source() -> Source {
    Source::fixed("relation")
}

pub(super) fn groups(snapshot: &Snapshot) -> Vec<Group<'_>> {
    let waits = Waits::from_snapshot(snapshot);
    let mut groups: BTreeMap<(String, Target), Group<'_>> = BTreeMap::new();
    for row in snapshot.waiting() {
        let Some(root) = waits.root_of(row.pid) else {
            continue;
        };
        let Some(target) = target(snapshot, row) else {
            continue;
        };
        let database = database(snapshot, row);
        let group = groups
            .entry((database.clone(), target.clone()))
            .or_insert_with(|| Group {
                database,
                target,
                waiters: Vec::new(),
                roots: Vec::new(),
            });
        group.waiters.push(row);
        if !group.roots.contains(&root) {
            group.roots.push(root);
        }
    }
    groups.into_values().collect()
}

fn database(snapshot: &Snapshot, row: &LockRow) -> String {
    let of_session = || Some(snapshot.parties.get(&row.pid)?.database()?.to_owned());
    let shared = || row.relation.as_ref().map(|_| SHARED.to_owned());
    row.database
        .clone()
        .or_else(shared)
        .or_else(of_session)
        .unwrap_or_else(|| "unknown".to_owned())
}

/// `None` for waits that concern neither rows nor tables.
fn target(snapshot: &Snapshot, row: &LockRow) -> Option<Target> {
    if let Some(relation) = &row.relation {
        return (row.kind != "advisory").then(|| table_target(relation));
    }
    let transaction = match row.kind.as_str() {
        "transactionid" | "virtualxid" => row.transaction.clone().unwrap_or_default(),
        _ => return None,
    };
    Some(row_of(snapshot, row).map_or(Target::Transaction(transaction), table_target))
}

fn table_target(relation: &Relation) -> Target {
    match &relation.name {
        Some((schema, name)) => Target::Named(schema.clone(), name.clone()),
        None => Target::Oid(relation.oid),
    }
}

/// A session that waits for a row waits for the transaction that wrote it. Its table is that of
/// the tuple that the waiter has locked to keep its place; otherwise the only table that both
/// it and a blocker are writing.
fn row_of<'a>(snapshot: &'a Snapshot, waiter: &LockRow) -> Option<&'a Relation> {
    let granted = || snapshot.rows.iter().filter(|row| row.granted);
    let tuple = granted().find(|row| row.pid == waiter.pid && row.kind == "tuple");
    if let Some(relation) = tuple.and_then(|row| row.relation.as_ref()) {
        return Some(relation);
    }
    let modes: &[&str] = match waiter.kind.as_str() {
        "virtualxid" => &["ShareUpdateExclusiveLock", "ShareLock", "AccessExclusiveLock"],
        _ => &["RowExclusiveLock", "RowShareLock"],
    };
    let tables_of = |pid: i32, any_mode: bool| {
        let rows = granted().filter(move |row| row.pid == pid && row.kind == "relation");
        rows.filter(move |row| any_mode || modes.contains(&row.mode.as_str()))
            .filter_map(|row| row.relation.as_ref())
            .filter(|relation| relation.is_table)
    };
    let blockers: BTreeSet<u32> = waiter
        .blocked_by
        .iter()
        .flat_map(|pid| tables_of(*pid, true))
        .map(|relation| relation.oid)
        .collect();
    let mut locked: BTreeMap<u32, &Relation> = tables_of(waiter.pid, false)
        .map(|relation| (relation.oid, relation))
        .collect();
    if locked.len() > 1 {
        locked.retain(|oid, _| blockers.contains(oid));
    }
    if locked.len() == 1 {
        locked.into_values().next()
    } else {
        None
    }
}

/// A row or table lock ends with its transaction, so the session's next transaction is another
/// holding.
fn generation(root: &Party) -> Reported<Generation> {
    match (root.generation(), root) {
        (Reported::Value(session), Party::Session(row)) => match row.xact_start {
            Some(start) => Reported::Value(Generation::new(format!(
                "{session}~{}",
                lock_participant::exact_time(start)
            ))),
            None => Reported::unknown("its transaction ended during the read"),
        },
        (generation, _) => generation,
    }
}

impl Target {
    fn resource(&self, database: &str) -> Resource {
        let target = match self {
            Self::Named(schema, name) => format!("{schema}.{name}"),
            Self::Oid(oid) => format!("oid {oid}"),
            Self::Transaction(id) => format!("transaction {id}"),
        };
        Resource::from(format!("relation:{database}:{target}").as_str())
    }
}

/// The name of a table of one database; its number if schema and name are unknown.
pub(super) fn resource(database: &str, qualified_name: Option<(String, String)>, oid: u32) -> Resource {
    let target = qualified_name.map_or(Target::Oid(oid), |(schema, name)| Target::Named(schema, name));
    target.resource(database)
}

impl Group<'_> {
    pub(super) fn resource(&self) -> Resource {
        self.target.resource(&self.database)
    }

    pub(super) fn lock(&self, snapshot: &Snapshot) -> ObservedLock {
        let root = self.roots.first().and_then(|pid| snapshot.parties.get(pid));
        let ended = "the blocking session ended during the read";
        ObservedLock {
            source: source(),
            resource: self.resource(),
            owner: root.map_or(Reported::unknown(ended), |party| {
                Reported::Value(party.owner_id())
            }),
            owner_count: u32::try_from(self.roots.len()).unwrap_or(u32::MAX),
            sharers: Vec::new(),
            lease_id: Reported::absent("row and table locks have no lease"),
            generation: root.map_or(Reported::unknown(ended), generation),
            fencing_token: Reported::absent("row and table locks have no fencing tokens"),
            acquired_at: root.map_or(Reported::unknown(ended), Party::acquired_at),
            renewed_at: Reported::absent("row and table locks are not renewed"),
            lifetime: Lifetime::Session {
                why: "it lives as long as its transaction: there is no lease to renew".into(),
            },
            waiter_count: Reported::Value(u32::try_from(self.waiters.len()).unwrap_or(u32::MAX)),
            oldest_waiter_ms: self
                .waiters
                .iter()
                .filter_map(|row| snapshot.waited_ms(row))
                .max(),
            line: snapshot.wait_queue(&self.waiters, generation),
            condition: self
                .roots
                .iter()
                .find_map(|pid| snapshot.parties.get(pid)?.orphaned()),
        }
    }

    pub(super) fn owners(&self, snapshot: &Snapshot) -> Vec<OwnerId> {
        self.roots
            .iter()
            .filter_map(|pid| Some(snapshot.parties.get(pid)?.owner_id()))
            .collect()
    }

    /// All holders and waiters, for the blocker trees.
    pub(super) fn pids(&self) -> Vec<i32> {
        self.waiters
            .iter()
            .map(|row| row.pid)
            .chain(self.roots.iter().copied())
            .collect()
    }
}
