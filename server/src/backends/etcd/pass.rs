//! One pass: list all keys, then ask about their leases, the most urgent first, handing locks over as they are known.
//!
//! With more leases than can be read again in half a poll period, the rest of those read not long ago are handed over
//! with that reading and its moment. Then come those that have none, or an old one, until the budget is used up; what
//! is left of the others is unknown.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use domain::known::Known;
use domain::names::{Resource, Source};
use domain::observation::{Coverage, Lifetime, ObservedLock, Tick};

use super::EtcdBackend;
use super::fault::{Fault, Kind};
use super::leases::{self, CHUNK_LEASES, Left};
use super::listing;
use super::record::{key_source, mutex_source};
use super::row::Row;
use crate::backends::{BackendError, Batch, Budget, Pass, Sink, SourcePass};

/// Rows of which the lease is still to be told, by lease.
struct Waiting {
    rows: Vec<Option<Row>>,
    by_lease: HashMap<i64, Vec<usize>>,
}

impl Waiting {
    /// Leases of rows that were not handed over yet.
    fn untold(&self) -> impl Iterator<Item = i64> {
        self.by_lease
            .iter()
            .filter(|(_, rows)| rows.iter().any(|index| self.rows[*index].is_some()))
            .map(|(lease, _)| *lease)
    }
}

enum Round {
    /// Leases with a reading that would do: read again while there is time, then handed over with what there is.
    Young,
    /// All others.
    Rest,
}

impl EtcdBackend {
    pub(super) async fn pass(&self, budget: Budget, sink: &mut dyn Sink) -> Result<Pass, BackendError> {
        let budget_ms = i64::try_from(budget.time_max.as_millis()).unwrap_or(i64::MAX);
        let deadline = self.link.clock.tick().plus(budget_ms);
        let mut listing = listing::list(&self.link, deadline).await;
        if let Some(fault) = listing.failed() {
            return Err(fault.error);
        }
        let complete = listing.coverage() == Coverage::Complete;
        if complete {
            self.snapshot
                .store(listing.revision, std::sync::atomic::Ordering::Release);
        }
        let coverage = listing.coverage();
        let (plain, mut waiting) = split(std::mem::take(&mut listing.rows));
        hand_over(sink, plain);
        let (unread, fault, gone) = self.read_leases(&mut waiting, deadline, sink).await;
        if complete {
            self.leases.keep(&waiting.by_lease.keys().copied().collect());
        }
        // Their leases ended since they were listed: most of these keys are gone by now.
        let mut late = None;
        if !gone.is_empty() {
            let left = u64::try_from(deadline.since(self.link.clock.tick())).unwrap_or(0);
            let again = tokio::time::timeout(Duration::from_millis(left), self.named(&gone, sink)).await;
            late = again.ok().and_then(Result::err).map(|error| error.to_string());
        }
        let fault = listing
            .fault
            .or(fault)
            .map(|fault| fault.error.to_string())
            .or(late)
            .or_else(|| {
                (unread > 0).then(|| format!("what is left of {unread} locks was not read within the budget"))
            });
        let source = |source: Source| SourcePass {
            source,
            coverage: coverage.clone(),
            fault: fault.clone(),
        };
        Ok(Pass {
            sources: vec![source(key_source()), source(mutex_source())],
            clock: Known::unknown("etcd tells no wall clock; leases count on its own"),
        })
    }

    /// Hands over every waiting row. Tells how many stay without a reading, why, and what to look at again.
    async fn read_leases(
        &self,
        waiting: &mut Waiting,
        deadline: Tick,
        sink: &mut dyn Sink,
    ) -> (usize, Option<Fault>, Vec<(Source, Resource)>) {
        let started = self.link.clock.tick();
        let poll_ms = self.link.settings.poll_ms;
        let soon = deadline.min(started.plus(poll_ms / 2));
        // Half a poll later, what may wait is not older than two polls.
        let young_ms = poll_ms.saturating_add(poll_ms / 2);
        let mut gone = Vec::new();
        let mut fault = None;
        for round in [Round::Young, Round::Rest] {
            let now = self.link.clock.tick();
            let (list, until) = match round {
                Round::Young => (self.leases.plan(waiting.untold(), now, young_ms).may, soon),
                // Whatever its age: what the first round left over is too old by now.
                Round::Rest => (self.leases.plan(waiting.untold(), now, -1).must, deadline),
            };
            for chunk in list.chunks(CHUNK_LEASES) {
                let left = until.since(self.link.clock.tick());
                if left <= 0 || fault.as_ref().is_some_and(out_of_reach) {
                    break;
                }
                let limit = Duration::from_millis(u64::try_from(left).unwrap_or(0));
                let read = tokio::time::timeout(limit, self.leases.read(&self.link, chunk)).await;
                fault = read.ok().and_then(Result::err).or(fault);
                self.tell(waiting, chunk, started, sink, &mut gone);
            }
            let oldest = self.link.clock.tick().plus(-poll_ms.saturating_mul(2));
            self.tell(waiting, &list, oldest, sink, &mut gone);
        }
        let unread: Vec<Row> = waiting.rows.iter_mut().filter_map(Option::take).collect();
        let count = unread.len();
        let why = leases::unread(fault.as_ref());
        let unknown = |row: Row| (row.read_at, row.lock(Lifetime::Unknown { why: why.clone() }));
        hand_over(sink, unread.into_iter().map(unknown));
        (count, fault, gone)
    }

    /// Hands over the rows on these leases of which there is a reading not older than `oldest`.
    fn tell(
        &self,
        waiting: &mut Waiting,
        leases: &[i64],
        oldest: Tick,
        sink: &mut dyn Sink,
        gone: &mut Vec<(Source, Resource)>,
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
                if reading.left == Left::Gone {
                    gone.push((row.source, row.resource));
                } else {
                    known.push((reading.at, row.lock(reading.lifetime())));
                }
            }
        }
        hand_over(sink, known);
    }
}

fn out_of_reach(fault: &Fault) -> bool {
    fault.kind == Kind::Transport
}

/// Rows without a lease as locks; the others with an index by lease.
fn split(rows: Vec<Row>) -> (Vec<(Tick, ObservedLock)>, Waiting) {
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
        why: "the key hangs on no lease".into(),
    }
}

/// One batch per moment of reading.
pub(super) fn hand_over(sink: &mut dyn Sink, locks: impl IntoIterator<Item = (Tick, ObservedLock)>) {
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
