//! Converts keys to locks: plain keys one to one, the keys of one queue to one lock with its
//! waiters in order. Pure.

use std::collections::HashMap;
use std::sync::Arc;

use domain::generation::Generation;
use domain::limits::{WAITERS_IDENTIFIED_MAX, WAITERS_KEPT_MAX};
use domain::names::{Resource, Source};
use domain::observation::{InLine, Lifetime, ObservedCondition, ObservedLock, WaitIdentity};
use domain::reported::{Reported, Why};
use domain::tick::Tick;
use domain::token::FencingToken;
use domain::waits::{IdentityField, WaitParty};
use sha2::{Digest, Sha256};

use super::record::{CUT_QUEUE, KeyPlacement, LARGE_VALUE, Record, hex, key_source, mutex_source, place};

/// One lock before its lease was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EtcdRow {
    pub(super) source: Source,
    pub(super) resource: Resource,
    pub(super) holder: Record,
    /// Next waiter first. Empty for a plain key.
    pub(super) waiters: Vec<Record>,
    pub(super) note: Option<Why>,
    /// Time of the request that read it.
    pub(super) read_at: Tick,
}

impl EtcdRow {
    fn key(record: Record, note: Option<Why>, read_at: Tick) -> Self {
        let resource = Resource::from_bytes(&record.key);
        Self {
            source: key_source(),
            resource,
            holder: record,
            waiters: Vec::new(),
            note,
            read_at,
        }
    }

    /// The lowest create revision holds; the others wait in that order.
    fn queue(name: &[u8], mut records: Vec<Record>, read_at: Tick) -> Option<Self> {
        records.sort_by_key(|record| record.create_revision);
        let mut records = records.into_iter();
        let holder = records.next()?;
        let resource = Resource::from_bytes(name);
        let waiters = records.collect();
        Some(Self {
            source: mutex_source(),
            resource,
            holder,
            waiters,
            note: None,
            read_at,
        })
    }

    pub(super) fn lock(&self, lifetime: Lifetime) -> ObservedLock {
        let lease = self.holder.lease;
        ObservedLock {
            source: self.source.clone(),
            resource: self.resource.clone(),
            owner: if self.holder.value_read {
                Reported::Value(self.holder.owner.clone())
            } else {
                Reported::unknown(LARGE_VALUE)
            },
            owner_count: 1,
            sharers: Vec::new(),
            lease_id: match lease {
                0 => Reported::absent("the key has no lease"),
                id => Reported::Value(hex(id).into_boxed_str()),
            },
            generation: if self.is_unread_key() {
                Reported::unknown(LARGE_VALUE)
            } else {
                Reported::Value(generation(&self.source, &self.holder))
            },
            fencing_token: match u64::try_from(self.holder.create_revision) {
                Ok(revision) => Reported::Value(FencingToken::new(revision)),
                Err(_) => Reported::unknown("etcd gave no create revision"),
            },
            acquired_at: Reported::unknown(
                "etcd records no wall time, and a restart refills TTLs, so it cannot be inferred",
            ),
            renewed_at: Reported::unknown("etcd does not record renewals"),
            lifetime,
            waiter_count: if self.source == mutex_source() {
                Reported::Value(u32::try_from(self.waiters.len()).unwrap_or(u32::MAX))
            } else {
                Reported::unknown("etcd has no record of waiters for a plain key")
            },
            oldest_waiter_ms: None,
            line: self.wait_queue(),
            condition: if self.is_unread_key() {
                Some(ObservedCondition::Unrecognised {
                    why: LARGE_VALUE.into(),
                })
            } else {
                self.note.clone().map(|why| ObservedCondition::Note { why })
            },
        }
    }

    /// A plain key without its value: its holders cannot be distinguished, so it is not
    /// unlocked. The holder of a queue is identified by its revision alone.
    pub(super) fn is_unread_key(&self) -> bool {
        self.source == key_source() && !self.holder.value_read
    }
}

impl EtcdRow {
    /// etcd does not record when a key was written: wait times are observed.
    fn wait_queue(&self) -> Vec<InLine> {
        let waiters = self.waiters.iter().take(WAITERS_KEPT_MAX).enumerate();
        let holder = Arc::new(party(&self.holder));
        let queued = |(at, waiter): (usize, &Record)| InLine {
            generation: generation(&self.source, waiter),
            waited_ms: None,
            identity: (at < WAITERS_IDENTIFIED_MAX).then(|| {
                Box::new(WaitIdentity {
                    party: Arc::new(party(waiter)),
                    wants: None,
                    blocked_by: vec![holder.clone()],
                    more_blockers: 0,
                })
            }),
        };
        waiters.map(queued).collect()
    }
}

/// All keys on one lease belong to one client. Without an owner in the value it has none: a
/// mutex of Go's `concurrency` writes no value.
fn party(record: &Record) -> WaitParty {
    let session = hex(record.lease);
    let owner = Some(record.owner.as_str()).filter(|owner| record.value_read && *owner != session);
    let fields = [
        (IdentityField::Owner, owner),
        (IdentityField::Session, Some(session.as_str())),
    ];
    WaitParty::new(session.as_str(), record.owner.clone(), fields)
}

/// Distinguishes holdings. A queue key is named after its lease and created once, so its create
/// revision identifies it. A plain key may be overwritten by another owner and keep its create
/// revision: there the owner is included.
pub(super) fn generation(source: &Source, holder: &Record) -> Generation {
    let revision = holder.create_revision;
    if *source == mutex_source() {
        return Generation::new(format!("rev:{revision}"));
    }
    let digest: [u8; 32] = Sha256::digest(holder.owner.as_str().as_bytes()).into();
    let [a, b, c, d, e, f, g, h, ..] = digest;
    let owner = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
    Generation::new(format!("rev:{revision}@{owner:016x}"))
}

/// Groups keys, given in ascending order, into rows. A queue is complete once a key after all
/// of its keys was read.
pub(super) struct Rows<'a> {
    prefix: &'a [u8],
    open: HashMap<Vec<u8>, (Vec<Record>, Tick)>,
}

impl<'a> Rows<'a> {
    pub(super) fn below(prefix: &'a [u8]) -> Self {
        Self {
            prefix,
            open: HashMap::new(),
        }
    }

    /// Adds one key; a plain key is a row at once.
    pub(super) fn add(&mut self, record: Record, read_at: Tick) -> Option<EtcdRow> {
        match place(&record.key, record.lease, self.prefix) {
            KeyPlacement::Queue(name) => {
                self.open
                    .entry(name)
                    .or_insert_with(|| (Vec::new(), read_at))
                    .0
                    .push(record);
                None
            }
            KeyPlacement::Key => Some(EtcdRow::key(record, None, read_at)),
            KeyPlacement::CutQueue => Some(EtcdRow::key(record, Some(CUT_QUEUE.into()), read_at)),
        }
    }

    /// The queues that end before `key`; all queues with `None`.
    pub(super) fn close(&mut self, before: Option<&[u8]>) -> Vec<EtcdRow> {
        let complete_names: Vec<Vec<u8>> = self
            .open
            .keys()
            .filter(|name| before.is_none_or(|key| ends_before(name, key)))
            .cloned()
            .collect();
        let mut rows = Vec::with_capacity(complete_names.len());
        for name in complete_names {
            if let Some((records, read_at)) = self.open.remove(&name) {
                rows.extend(EtcdRow::queue(&name, records, read_at));
            }
        }
        rows
    }

    /// Keys in incomplete queues.
    pub(super) fn open_queues(&self) -> usize {
        self.open.values().map(|(records, _)| records.len()).sum()
    }
}

/// Whether every `name/…` is below `key`: `0` is the byte after `/`.
fn ends_before(name: &[u8], key: &[u8]) -> bool {
    match key.get(..name.len()) {
        Some(head) if head == name => key.get(name.len()).is_some_and(|byte| *byte > b'/'),
        _ => key > name,
    }
}

#[cfg(test)]
mod tests {
    use domain::names::OwnerId;
    use proptest::prelude::*;

    use super::*;

    fn member(name: &str, lease: i64, create_revision: i64) -> Record {
        let key = format!("{name}/{}", hex(lease)).into_bytes();
        Record {
            key,
            owner: OwnerId::new("o"),
            lease,
            create_revision,
            value_read: true,
        }
    }

    #[test]
    fn the_lowest_create_revision_holds_in_any_key_order() {
        // Lease order and revision order differ; a longer name shares the beginning.
        let mut rows = Rows::below(b"/l/");
        for record in [
            member("/l/a", 1, 30),
            member("/l/a", 2, 10),
            member("/l/a", 3, 20),
            member("/l/ab", 4, 5),
        ] {
            assert_eq!(rows.add(record, Tick(7)), None);
        }
        let mut closed = rows.close(None);
        closed.sort_by(|a, b| a.resource.cmp(&b.resource));
        assert_eq!(closed[0].holder.create_revision, 10);
        assert_eq!(
            closed[0]
                .waiters
                .iter()
                .map(|waiter| waiter.create_revision)
                .collect::<Vec<_>>(),
            [20, 30]
        );
        assert_eq!(closed[1].waiters, []);
    }

    proptest! {
        #[test]
        fn a_queue_is_never_closed_before_its_last_key(name in "[a-z/0]{1,6}", tail in "[a-z/0-]{0,4}", key in "[a-z/0-]{0,8}") {
            let member = format!("{name}/{tail}");
            if ends_before(name.as_bytes(), key.as_bytes()) {
                prop_assert!(member.as_bytes() < key.as_bytes());
            }
        }
    }
}
