//! One scan: lists all keys, then reads their leases, most urgent first, delivering locks as
//! they become complete.
//!
//! If there are more leases than can be read in half a poll interval, those read recently are
//! delivered with that reading and its time. Then come those without a reading or with an old
//! one, until the scan timeout; the time left of the others is unknown.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use domain::duration::millis;
use domain::names::{Resource, Source};
use domain::observation::{Coverage, Lifetime, ObservedLock};
use domain::reported::Reported;
use domain::tick::Tick;

use super::EtcdBackend;
use super::error::{EtcdError, EtcdErrorKind};
use super::leases::{self, CHUNK_LEASES, LeaseTimeLeft};
use super::list;
use super::record::{key_source, mutex_source};
use super::row::EtcdRow;
use crate::{BackendError, Batch, Budget, Pass, Sink, SourcePass};

/// Rows whose lease is still to be read, by lease.
struct Waiting {
    rows: Vec<Option<EtcdRow>>,
    by_lease: HashMap<i64, Vec<usize>>,
}

impl Waiting {
    /// Leases of undelivered rows.
    fn undelivered_leases(&self) -> impl Iterator<Item = i64> {
        self.by_lease
            .iter()
            .filter(|(_, rows)| rows.iter().any(|index| self.rows[*index].is_some()))
            .map(|(lease, _)| *lease)
    }
}

enum Round {
    /// Leases with a usable reading: read again while there is time, then delivered.
    Young,
    /// All others.
    Rest,
}

impl EtcdBackend {
    pub(super) async fn pass(&self, budget: Budget, sink: &mut dyn Sink) -> Result<Pass, BackendError> {
        let budget_ms = millis(budget.time_max);
        let deadline = self.link.clock.tick().plus(budget_ms);
        self.refreshed.begin_scan();
        let mut listing = list::list(&self.link, deadline).await;
        if let Some(fault) = listing.failed() {
            return Err(fault.error);
        }
        let complete = listing.coverage() == Coverage::Complete;
        if complete {
            self.snapshot
                .store(listing.revision, std::sync::atomic::Ordering::Release);
        }
        let mut coverage = listing.coverage();
        let listed = listing.rows.len() as u64;
        let (plain, mut waiting) = split(std::mem::take(&mut listing.rows));
        deliver(sink, plain);
        let (unread, fault, missing) = self.read_leases(&mut waiting, deadline, sink).await;
        if complete {
            self.leases.retain(&waiting.by_lease.keys().copied().collect());
        }
        let changed_fault = self.read_again(&missing, deadline, sink).await;
        if let Some(why) = changed_fault.clone().filter(|_| complete) {
            coverage = Coverage::Partial {
                seen: listed.saturating_sub(missing.len() as u64),
                of: Some(listed),
                why: why.into(),
            };
        }
        if changed_fault.is_none() {
            read_parts(std::mem::take(&mut listing.read_prefixes), sink);
        }
        let fault = listing
            .fault
            .or(fault)
            .map(|fault| fault.error.to_string())
            .or(changed_fault)
            .or_else(|| {
                (unread > 0)
                    .then(|| format!("the time left of {unread} locks was not read within the scan timeout"))
            });
        let source = |source: Source| SourcePass {
            source,
            coverage: coverage.clone(),
            fault: fault.clone(),
        };
        Ok(Pass {
            sources: vec![source(key_source()), source(mutex_source())],
            clock: Reported::unknown("etcd reports no wall clock; leases use its internal clock"),
        })
    }

    /// Reads locks that changed after they were listed: their leases ended, so that most of these keys are deleted by
    /// now, or a refresh has read them since. Returns why they were not read; then they must not count as gone.
    async fn read_again(
        &self,
        names: &[(Source, Resource)],
        deadline: Tick,
        sink: &mut dyn Sink,
    ) -> Option<String> {
        if names.is_empty() {
            return None;
        }
        let left = u64::try_from(deadline.since(self.link.clock.tick())).unwrap_or(0);
        let read = self.refresh_named(names, usize::MAX, sink);
        match tokio::time::timeout(Duration::from_millis(left), read).await {
            Ok(read) => read.err().map(|error| error.to_string()),
            Err(_) => Some(
                "locks that changed during the scan were not read again within the scan timeout".to_owned(),
            ),
        }
    }

    /// Delivers every waiting row. Returns how many have no reading, why, and what to read
    /// again.
    async fn read_leases(
        &self,
        waiting: &mut Waiting,
        deadline: Tick,
        sink: &mut dyn Sink,
    ) -> (usize, Option<EtcdError>, Vec<(Source, Resource)>) {
        let started = self.link.clock.tick();
        let poll_interval_ms = self.link.settings.poll_interval_ms;
        let soon = deadline.min(started.plus(poll_interval_ms / 2));
        // After another half poll interval they are at most two intervals old.
        let young_ms = poll_interval_ms.saturating_add(poll_interval_ms / 2);
        let mut missing = Vec::new();
        let mut fault = None;
        for round in [Round::Young, Round::Rest] {
            let now = self.link.clock.tick();
            let (list, until) = match round {
                Round::Young => (
                    self.leases.plan(waiting.undelivered_leases(), now, young_ms).may,
                    soon,
                ),
                // Regardless of age: readings left over from the first round are too old by
                // now.
                Round::Rest => (
                    self.leases.plan(waiting.undelivered_leases(), now, -1).must,
                    deadline,
                ),
            };
            for chunk in list.chunks(CHUNK_LEASES) {
                let left = until.since(self.link.clock.tick());
                if left <= 0 || fault.as_ref().is_some_and(out_of_reach) {
                    break;
                }
                let limit = Duration::from_millis(u64::try_from(left).unwrap_or(0));
                let read = tokio::time::timeout(limit, self.leases.read(&self.link, chunk)).await;
                fault = read.ok().and_then(Result::err).or(fault);
                self.report_progress(waiting, chunk, started, sink, &mut missing);
            }
            let oldest = self.link.clock.tick().plus(-poll_interval_ms.saturating_mul(2));
            self.report_progress(waiting, &list, oldest, sink, &mut missing);
        }
        let unread: Vec<EtcdRow> = waiting.rows.iter_mut().filter_map(Option::take).collect();
        let count = unread.len();
        let why = leases::unread(fault.as_ref());
        let unknown = |row: EtcdRow| (row.read_at, row.lock(Lifetime::Unknown { why: why.clone() }));
        deliver(sink, unread.into_iter().map(unknown));
        (count, fault, missing)
    }

    /// Delivers rows whose lease has a reading not older than `oldest`. Those whose lease has ended, or that a refresh
    /// has read since they were listed, are `missing`.
    fn report_progress(
        &self,
        waiting: &mut Waiting,
        leases: &[i64],
        oldest: Tick,
        sink: &mut dyn Sink,
        missing: &mut Vec<(Source, Resource)>,
    ) {
        let mut known = Vec::new();
        for lease in leases {
            let Some(reading) = self.leases.get(*lease).filter(|reading| reading.at >= oldest) else {
                continue;
            };
            for index in waiting.by_lease.get(lease).into_iter().flatten() {
                let Some(row) = waiting.rows[*index].take() else {
                    continue;
                };
                if reading.left == LeaseTimeLeft::Gone || self.refreshed.has_newer(&row) {
                    missing.push((row.source, row.resource));
                } else {
                    known.push((reading.at, row.lock(reading.lifetime())));
                }
            }
        }
        deliver(sink, known);
    }
}

/// Locks below these prefixes that were not found are gone. The keys of a queue are below its name.
fn read_parts(prefixes: Vec<Vec<u8>>, sink: &mut dyn Sink) {
    for prefix in prefixes {
        let folder = prefix.clone();
        let covers_queue = move |name: &[u8]| [name, b"/"].concat().starts_with(&folder);
        sink.read_part(&mutex_source(), Arc::new(covers_queue));
        let covers_key = move |name: &[u8]| name.starts_with(&prefix);
        sink.read_part(&key_source(), Arc::new(covers_key));
    }
}

fn out_of_reach(fault: &EtcdError) -> bool {
    fault.kind == EtcdErrorKind::Transport
}

/// Rows without a lease as locks; the others with an index by lease.
fn split(rows: Vec<EtcdRow>) -> (Vec<(Tick, ObservedLock)>, Waiting) {
    let mut plain = Vec::new();
    let mut waiting = Waiting {
        rows: Vec::with_capacity(rows.len()),
        by_lease: HashMap::new(),
    };
    for row in rows {
        if row.holder.lease == 0 {
            plain.push((row.read_at, row.lock(no_lease())));
        } else {
            waiting
                .by_lease
                .entry(row.holder.lease)
                .or_default()
                .push(waiting.rows.len());
            waiting.rows.push(Some(row));
        }
    }
    (plain, waiting)
}

pub(super) fn no_lease() -> Lifetime {
    Lifetime::NoTtl {
        why: "the key has no lease".into(),
    }
}

/// One batch per reading time.
pub(super) fn deliver(sink: &mut dyn Sink, locks: impl IntoIterator<Item = (Tick, ObservedLock)>) {
    let mut batches: BTreeMap<Tick, Vec<ObservedLock>> = BTreeMap::new();
    for (at, lock) in locks {
        batches.entry(at).or_default().push(lock);
    }
    for (sent_at, locks) in batches {
        sink.accept(Batch {
            sent_at,
            locks,
            gone: Vec::new(),
        });
    }
}
