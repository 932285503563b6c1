//! From keys to locks: plain keys as they are, the keys of one queue as one lock with its waiters in order. Pure.

use std::collections::HashMap;

use domain::generation::Generation;
use domain::known::{Known, Why};
use domain::limits::WAITERS_KEPT_MAX;
use domain::names::{Resource, Source};
use domain::observation::{Condition, InLine, Lifetime, ObservedLock, Tick};
use domain::token::FencingToken;
use sha2::{Digest, Sha256};

use super::record::{CUT_QUEUE, LARGE_VALUE, Place, Record, hex, key_source, mutex_source, place};

/// One lock before its lease was asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) source: Source,
    pub(super) resource: Resource,
    pub(super) holder: Record,
    /// Next in line first. Empty for a plain key.
    pub(super) waiters: Vec<Record>,
    pub(super) note: Option<Why>,
    /// When the request that read it was sent.
    pub(super) read_at: Tick,
}

impl Row {
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
                Known::Known(self.holder.owner.clone())
            } else {
                Known::unknown(LARGE_VALUE)
            },
            owner_count: 1,
            lease_id: match lease {
                0 => Known::absent("the key hangs on no lease"),
                id => Known::Known(hex(id).into_boxed_str()),
            },
            generation: if self.is_unread_key() {
                Known::unknown(LARGE_VALUE)
            } else {
                Known::Known(generation(&self.source, &self.holder))
            },
            fencing_token: match u64::try_from(self.holder.create_revision) {
                Ok(revision) => Known::Known(FencingToken::new(revision)),
                Err(_) => Known::unknown("etcd gave no create revision"),
            },
            acquired_at: Known::unknown(
                "etcd records no wall time, and a restart refills TTLs, so it cannot be inferred",
            ),
            renewed_at: Known::unknown("etcd does not record renewals"),
            lifetime,
            waiter_count: if self.source == mutex_source() {
                Known::Known(u32::try_from(self.waiters.len()).unwrap_or(u32::MAX))
            } else {
                Known::unknown("those who wait for a plain key leave no trace in etcd")
            },
            oldest_waiter_ms: None,
            line: self.line(),
            condition: if self.is_unread_key() {
                Some(Condition::Unrecognised {
                    why: LARGE_VALUE.into(),
                })
            } else {
                self.note.clone().map(|why| Condition::Note { why })
            },
        }
    }

    /// A plain key without its value: nothing tells its holders apart, so it is not unlocked. The holder of a queue is
    /// told by its revision alone.
    pub(super) fn is_unread_key(&self) -> bool {
        self.source == key_source() && !self.holder.value_read
    }
}

impl Row {
    /// etcd does not record when a key was written: how long they wait is seen.
    fn line(&self) -> Vec<InLine> {
        let waiters = self.waiters.iter().take(WAITERS_KEPT_MAX);
        let in_line = |waiter| InLine {
            generation: generation(&self.source, waiter),
            waited_ms: None,
        };
        waiters.map(in_line).collect()
    }
}

/// What tells one holding from the next. A place in a queue is named after its lease and made once, so its create
/// revision says all. A plain key may be overwritten by somebody else and keep its create revision: there the owner
/// belongs to it.
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

/// Sorts keys, given in ascending order, into rows. A queue is complete once a key after all of its keys was seen.
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

    /// Takes one key; a plain key is a row at once.
    pub(super) fn add(&mut self, record: Record, read_at: Tick) -> Option<Row> {
        match place(&record.key, record.lease, self.prefix) {
            Place::Queue(name) => {
                self.open
                    .entry(name)
                    .or_insert_with(|| (Vec::new(), read_at))
                    .0
                    .push(record);
                None
            }
            Place::Key => Some(Row::key(record, None, read_at)),
            Place::CutQueue => Some(Row::key(record, Some(CUT_QUEUE.into()), read_at)),
        }
    }

    /// The queues that end before `key`; with none, all of them.
    pub(super) fn close(&mut self, before: Option<&[u8]>) -> Vec<Row> {
        let done: Vec<Vec<u8>> = self
            .open
            .keys()
            .filter(|name| before.is_none_or(|key| ends_before(name, key)))
            .cloned()
            .collect();
        let mut rows = Vec::with_capacity(done.len());
        for name in done {
            if let Some((records, read_at)) = self.open.remove(&name) {
                rows.extend(Row::queue(&name, records, read_at));
            }
        }
        rows
    }

    /// Keys in queues of which not all was seen.
    pub(super) fn left_open(&self) -> usize {
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
    fn the_lowest_create_revision_holds_whatever_the_key_order() {
        // Leases sort one way, revisions another; a longer name shares the beginning.
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
