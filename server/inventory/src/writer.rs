//! Write access to the inventory: one writer per backend, used by the observer.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use domain::backend::{BackendFailure, ClusterView, WatchState};
use domain::names::{BackendName, Resource, Source};
use domain::observation::Coverage;
use domain::reported::Reported;
use domain::safety::Safety;
use domain::tick::Tick;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::backend_state::{Slot, SlotState};
use super::change_queue::Outage;
use super::ingest::{Context, IngestOutcome, ReadSources};
use super::known_parts::{KnownParts, PartialScan};
use super::recheck::DueRechecks;
use super::shard::SourceInfo;
use super::{Inventory, status};
use backends::{Batch, NamePredicate, Pass, Probe};
use runtime::clock::ClockReading;

/// Shorter outages are not recorded, in milliseconds: rules are evaluated once a second.
const OUTAGE_MS_MIN: i64 = 1_000;

/// Returns the safety class and the clock resolution, in milliseconds, of a source.
type Describe = dyn Fn(&Source) -> (Safety, i64) + Send + Sync;

/// Writes the observations of one backend.
pub struct InventoryWriter {
    inventory: Arc<Inventory>,
    slot: Arc<Slot>,
    /// Our wall clock at tick 0.
    epoch: DateTime<Utc>,
    describe: Box<Describe>,
    /// Notified if the first recheck is due earlier than before.
    recheck_sooner: Notify,
    /// The current scan, as far as it is partial.
    partial: Mutex<PartialScan>,
}

impl Inventory {
    /// The writer of one configured backend; `None` for an unknown backend.
    pub fn feed(
        self: &Arc<Self>,
        backend: &BackendName,
        now: ClockReading,
        describe: impl Fn(&Source) -> (Safety, i64) + Send + Sync + 'static,
    ) -> Option<InventoryWriter> {
        let slot = self.slot(backend)?;
        let epoch = now.wall_at(Tick(0));
        slot.write().epoch_ms = epoch.timestamp_millis();
        Some(InventoryWriter {
            inventory: self.clone(),
            slot,
            epoch,
            describe: Box::new(describe),
            recheck_sooner: Notify::new(),
            partial: Mutex::default(),
        })
    }
}

impl InventoryWriter {
    pub fn backend(&self) -> &BackendName {
        &self.slot.info.name
    }

    fn context(&self, state: &SlotState, received_at: Tick) -> Context {
        Context {
            pass: state.pass,
            poll_interval_ms: self.slot.info.poll_interval_ms,
            offset_ms: state.offset_ms.known().copied().unwrap_or(0),
            epoch: self.epoch,
            has_scanned: state.passes.count > 0,
            last_flush: state.last_flush,
            last_pass: state
                .passes
                .last_end
                .map(|end| end.plus(-state.passes.last_duration_ms)),
            stale_after_ms: status::stale_after_ms(self.slot.info.poll_interval_ms, &state.passes),
            received_at,
            counts_grants: self.slot.info.traits.counts_grants,
            judge: self.slot.diagnosis_settings(),
            clock: state.clock(),
        }
    }

    /// Begins a scan; locks that it does not find are removed at its end.
    pub fn begin(&self, now: ClockReading) {
        *self.partial.lock() = PartialScan::default();
        let mut state = self.slot.write();
        state.pass = state.pass.wrapping_add(1);
        state.pass_began = Some(now.tick);
        state.shard.freed.clear();
    }

    /// Those locks of `source` that `covers` accepts are read completely even if the scan is not.
    pub fn read_part(&self, source: &Source, covers: NamePredicate) {
        self.partial.lock().parts.push((source.clone(), covers));
    }

    /// The current scan does not show which locks of `source` are held, except those that it found.
    pub fn mark_undecided(&self, source: &Source) {
        self.partial.lock().undecided.push(source.clone());
    }

    /// As [`receive`](Self::receive), for a response without delay.
    pub fn accept(&self, batch: Batch) {
        let sent_at = batch.sent_at;
        self.receive(batch, sent_at);
    }

    /// Applies a response that arrived at `received_at`.
    pub fn receive(&self, mut batch: Batch, received_at: Tick) {
        let sent_at = batch.sent_at;
        let read_at = self.epoch + TimeDelta::milliseconds(sent_at.0);
        let free = self
            .inventory
            .force_releases
            .take_from(self.backend(), &mut batch, read_at);
        let mut state = self.slot.write();
        for lock in &batch.locks {
            self.know_source(&mut state, &lock.source);
        }
        let mut context = self.context(&state, received_at);
        let first = state.shard.rechecks.first();
        let mut outcome = state.shard.apply(batch, &mut context);
        let is_sooner = |at| first.is_none_or(|first| at < first);
        if state.shard.rechecks.has_conflicts() || state.shard.rechecks.first().is_some_and(is_sooner) {
            self.recheck_sooner.notify_one();
        }
        for (source, resource) in &free {
            let shard = &mut state.shard;
            shard.remove_force_released(source, resource, sent_at, &context, &mut outcome);
        }
        state.last_flush = context.last_flush;
        self.publish(state, outcome);
    }

    /// Locks to read again now. None for an unreachable backend: its rows become stale.
    pub fn due_rechecks(&self, now: ClockReading) -> DueRechecks {
        let mut state = self.slot.write();
        if state.passes.failing {
            state.shard.rechecks.clear();
        }
        let due = state
            .shard
            .due_rechecks(now.tick, self.slot.info.poll_interval_ms);
        drop(state);
        if !due.names.is_empty() {
            self.inventory.bump(0);
        }
        due
    }

    /// Waits until a recheck is due earlier than [`due_rechecks`](Self::due_rechecks) returned.
    pub async fn recheck_sooner(&self) {
        self.recheck_sooner.notified().await;
    }

    /// Called after the locks that notifications named were applied: displays them immediately.
    pub fn refreshed(&self, names: &[(Source, Resource)], now: ClockReading) {
        let mut state = self.slot.write();
        state.confirm_notified(names);
        state.shard.flush();
        state.last_flush = now.tick;
        drop(state);
        self.inventory.mark_written();
    }

    fn know_source(&self, state: &mut SlotState, source: &Source) {
        if state.shard.source_number(source).is_some() {
            return;
        }
        let (safety, grain_ms) = (self.describe)(source);
        let info = SourceInfo {
            source: source.clone(),
            safety,
            grain_ms,
            locks: 0,
            fault: None,
            // A source that appears after the first scan had no locks in it, so all its parts count as read.
            known: match state.passes.count {
                0 => KnownParts::default(),
                _ => KnownParts::whole(),
            },
        };
        state.shard.sources.push(info);
    }

    /// Ends a scan: removes missing locks of completely read sources, and updates clock, coverage and health.
    pub fn end(&self, pass: Pass, now: ClockReading) {
        let mut state = self.slot.write();
        for part in &pass.sources {
            self.know_source(&mut state, &part.source);
        }
        for info in &mut state.shard.sources {
            // The safety class may depend on facts that the adapter has learnt meanwhile.
            (info.safety, info.grain_ms) = (self.describe)(&info.source);
            let part = pass.sources.iter().find(|part| part.source == info.source);
            info.fault = part.and_then(|part| part.fault.clone());
        }
        if let Reported::Value(reading) = pass.clock {
            state.clock_error_ms = reading.error_ms;
        }
        state.offset_ms = pass.clock.map(|reading| reading.offset_ms());
        let complete: Vec<Source> = pass
            .sources
            .iter()
            .filter(|part| part.coverage.is_complete())
            .map(|part| part.source.clone())
            .collect();
        self.record_outage(&state, now);
        let took_ms = state.pass_began.map_or(0, |began| now.tick.since(began));
        state.passes.last_duration_ms = took_ms;
        let stale_after = status::stale_after_ms(self.slot.info.poll_interval_ms, &state.passes);
        let mut context = self.context(&state, now.tick);
        let partial = std::mem::take(&mut *self.partial.lock());
        let read = ReadSources {
            complete: &complete,
            parts: &partial.parts,
        };
        let outcome = state.shard.finish(&read, now.tick, stale_after, &mut context);
        let scan = (state.pass, state.pass_began.unwrap_or(now.tick));
        state.shard.add_known_parts(&pass.sources, &partial, scan);
        state.last_flush = context.last_flush;
        // Only a watch that guarantees every event can be shown to have missed one.
        if self.slot.info.traits.watches_every_change && state.watch == WatchState::Live {
            state.confirm_missed(now.tick);
            let missing = state.shard.lock_names(&outcome.events);
            state.mark_missed(missing, now.tick);
        }
        state.coverage = worst(pass.sources.into_iter().map(|part| part.coverage));
        state.passes.count += 1;
        state.passes.last_end = Some(now.tick);
        state.passes.failing = false;
        state.passes.refused = false;
        state.answered(u32::try_from(took_ms).ok());
        state.recovered();
        let is_clock_moved = state.is_clock_moved();
        self.publish(
            state,
            IngestOutcome {
                touched: true,
                ..outcome
            },
        );
        if is_clock_moved {
            self.inventory.reevaluate_backend(&self.slot);
        }
    }

    /// Records the time without an observation that ends with this scan.
    fn record_outage(&self, state: &SlotState, now: ClockReading) {
        let since = status::unobserved_since(self.slot.info.poll_interval_ms, &state.passes, now.tick);
        if let Some(since) = since.filter(|since| now.tick.since(*since) >= OUTAGE_MS_MIN) {
            self.inventory.journal().record_outage(Outage {
                backend: self.backend().clone(),
                began: self.epoch + TimeDelta::milliseconds(since.0),
                ended: self.epoch + TimeDelta::milliseconds(now.tick.0),
            });
        }
    }

    /// A failed scan: all locks stay, and age.
    pub fn failed(&self, fault: BackendFailure, refused: bool) {
        let mut state = self.slot.write();
        state.passes.failing = true;
        state.passes.refused = refused;
        state.answered(None);
        state.failed(fault);
        self.publish(
            state,
            IngestOutcome {
                touched: true,
                ..IngestOutcome::default()
            },
        );
    }

    pub fn probed(&self, probe: Probe) {
        let mut state = self.slot.write();
        state.version = probe.version;
        state.rights = probe.rights;
    }

    pub fn watching(&self, watch: WatchState) {
        let mut state = self.slot.write();
        state.watch = watch;
        self.publish(
            state,
            IngestOutcome {
                touched: true,
                ..IngestOutcome::default()
            },
        );
    }

    /// The members of a replicated backend were read.
    pub fn clusters(&self, clusters: Vec<ClusterView>, read_at: Tick) {
        let mut state = self.slot.write();
        state.clusters = Some((clusters, read_at));
        self.publish(
            state,
            IngestOutcome {
                touched: true,
                ..IngestOutcome::default()
            },
        );
    }

    fn publish(&self, mut state: parking_lot::RwLockWriteGuard<'_, SlotState>, outcome: IngestOutcome) {
        self.inventory
            .journal()
            .record(&self.slot.info.name, &state.shard, &outcome.events);
        state.recent.extend(outcome.events);
        drop(state);
        if outcome.touched {
            self.inventory.bump(u64::from(outcome.changes));
        } else {
            self.inventory.mark_written();
        }
    }
}

/// The least complete of several coverages; partial ones add up.
fn worst(parts: impl Iterator<Item = Coverage>) -> Coverage {
    let mut total = Coverage::Complete;
    for part in parts {
        total = match (total, part) {
            (Coverage::Complete, part) => part,
            (partial, Coverage::Complete) => partial,
            (
                Coverage::Partial { seen, of, why },
                Coverage::Partial {
                    seen: more,
                    of: rest,
                    why: other,
                },
            ) => {
                let of = of.zip(rest).map(|(a, b)| a + b);
                Coverage::Partial {
                    seen: seen + more,
                    of,
                    why: format!("{why}; {other}").into(),
                }
            }
        };
    }
    total
}
