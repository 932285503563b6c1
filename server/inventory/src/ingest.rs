//! Applies scan results to a shard: upserts, renewals, diagnoses, events. Removals are in
//! [`removal`].

mod events;
mod removal;
mod unidentified;

use chrono::{DateTime, Utc};
use domain::lock_detail::EventKind;
use domain::observation::{Lifetime, ObservedLock, Sharer};
use domain::state::LockState;
use domain::tick::Tick;

use super::entry::{Ends, Entry, EntryGaps};
use super::events::LockEvent;
use super::long_held::{BackendClock, Judge, NEVER};
use super::missing_reasons::FILLED;
use super::shard::{Shard, SourceInfo};
use super::sharers::{Share, Sharing};
use super::slab::Id;
use backends::Batch;

use self::events::{OwnersChange, ScannedLock, carry_over, event, record_change, share_event};
use self::removal::ended_by_unlock;

pub(super) use self::removal::ReadSources;
pub(super) use self::unidentified::Unidentified;

/// New locks are added to the index at this number, or after the flush interval.
const PENDING_MAX: usize = 16_384;
const FLUSH_INTERVAL_MS: i64 = 200;
/// A lower bound of the deadline is replaced only by one that is later by this much, in
/// milliseconds.
const BETTER_BY_MS: i64 = 20;

/// Effects of one batch.
#[derive(Debug, Default)]
pub(super) struct IngestOutcome {
    /// Rows added, removed or changed; renewals are not counted.
    pub(super) changes: u32,
    /// A displayed value may have changed, at least by a renewal.
    pub(super) touched: bool,
    pub(super) events: Vec<LockEvent>,
}

/// Inputs besides the batch.
#[derive(Debug, Clone)]
pub(super) struct Context {
    pub(super) pass: u32,
    pub(super) poll_interval_ms: i64,
    /// Backend's clock minus ours; 0 until it is known.
    pub(super) offset_ms: i64,
    /// Our wall clock at tick 0.
    pub(super) epoch: DateTime<Utc>,
    /// The first scan has ended: from now on a change of a lock is an event.
    pub(super) has_scanned: bool,
    pub(super) last_flush: Tick,
    /// Start of the last finished scan, and the age at which a reading is stale, in
    /// milliseconds.
    pub(super) last_pass: Option<Tick>,
    pub(super) stale_after_ms: i64,
    /// Arrival of the response: its changes happened before.
    pub(super) received_at: Tick,
    /// Its tokens rise by one with each grant of a resource.
    pub(super) counts_grants: bool,
    pub(super) judge: Judge,
    pub(super) clock: BackendClock,
}

impl Context {
    /// The previous reading, if it was stale: the backend was not observed between the two.
    pub(super) fn outage_since(&self, before: Tick, at: Tick) -> Option<Tick> {
        (at.since(before) > self.stale_after_ms).then_some(before)
    }

    /// Time of a change: the request of its reading or, after an outage, the arrival of the
    /// response.
    pub(super) fn dated(&self, at: Tick, outage: Option<Tick>) -> Tick {
        outage.map_or(at, |_| at.max(self.received_at))
    }

    pub(super) fn wall(&self, tick: Tick) -> DateTime<Utc> {
        self.epoch + chrono::TimeDelta::milliseconds(tick.0)
    }

    /// `before`: the same acquisition at its previous reading. Rules may be limited to owners.
    fn long_after(&self, entry: &Entry, before: Option<&Entry>, info: &SourceInfo) -> Tick {
        let is_same = |before: &&Entry| {
            before.owner == entry.owner
                && before.acquired_at == entry.acquired_at
                && before.gaps.acquired_at == entry.gaps.acquired_at
        };
        match before.filter(is_same) {
            Some(before) => before.long_after,
            None => self.judge.long_after(entry, info, self.clock),
        }
    }

    /// Earliest beginning of an acquisition first seen after an outage since `since`.
    pub(super) fn begun_after(&self, entry: &Entry, since: Tick) -> DateTime<Utc> {
        let acquired = (entry.gaps.acquired_at == FILLED)
            .then(|| DateTime::from_timestamp_millis(entry.acquired_at))
            .flatten();
        let acquired = acquired.map_or(since, |at| self.tick_of(at).min(entry.read_at));
        self.wall(since.max(acquired))
    }

    /// Our tick of a moment by the backend's clock.
    fn tick_of(&self, backend: DateTime<Utc>) -> Tick {
        Tick((backend - self.epoch).num_milliseconds() - self.offset_ms)
    }
}

impl Shard {
    pub(super) fn apply(&mut self, batch: Batch, context: &mut Context) -> IngestOutcome {
        let mut outcome = IngestOutcome::default();
        for lock in batch.locks {
            self.upsert(lock, batch.sent_at, context, &mut outcome);
        }
        for (source, resource) in &batch.gone {
            self.remove_named(source, resource, batch.sent_at, context, &mut outcome);
        }
        let waited = context.received_at.since(context.last_flush);
        if self.pending.len() >= PENDING_MAX || waited >= FLUSH_INTERVAL_MS {
            context.last_flush = context.received_at;
            self.flush();
        }
        outcome
    }

    /// Adds new locks to the index and updates all sums.
    pub(super) fn flush(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        self.order.insert_all(pending, &self.slab);
        self.order.recompute_sums(&self.slab);
    }

    fn upsert(
        &mut self,
        mut lock: ObservedLock,
        sent_at: Tick,
        context: &Context,
        outcome: &mut IngestOutcome,
    ) {
        let Some(source) = self.source_number(&lock.source) else {
            return;
        };
        match self.lookup(source, lock.resource.as_bytes()) {
            Some(id) => {
                let old = self.slab.get_mut(id).filter(|old| old.read_at > sent_at);
                match old {
                    // A scan and a refresh may overtake each other: the later reading wins.
                    Some(old) => old.pass = context.pass,
                    None => self.reread(id, lock, sent_at, context, outcome),
                }
            }
            None => {
                let line = std::mem::take(&mut lock.line);
                let sharers = std::mem::take(&mut lock.sharers);
                let mut entry = self.make(lock, source, sent_at, context);
                self.lines.replace(source, &entry.name, line, sent_at);
                let (info, gaps) = (&self.sources[usize::from(source)], &self.gaps);
                let is_known = info.known.has(&entry.name);
                let last_read = info.known.last_read(&entry.name).or(context.last_pass);
                entry.long_after = context.long_after(&entry, None, info);
                let recheck_at;
                (entry.state, recheck_at) =
                    entry.diagnose_ahead(gaps, info.grain_ms, context.poll_interval_ms);
                entry.group = self.groups.group_for(&entry.name, sent_at);
                let outage = last_read.and_then(|last| context.outage_since(last, sent_at));
                entry.seen_begin = is_known && outage.is_none();
                if entry.state == LockState::DualOwner {
                    self.groups.count_dual_owner(entry.group);
                }
                outcome.changes += 1;
                outcome.touched = true;
                let sharing = self.sharers.replace(None, &entry, sharers);
                if is_known && self.gaps.has_holder(&entry) {
                    let wall = context.wall(context.dated(sent_at, outage));
                    let others = sharing.iter().flat_map(|sharing| sharing.now.iter().skip(1));
                    let others =
                        others.map(|share| share_event(EventKind::ShareAcquired, share, &entry, wall));
                    let all = std::iter::once(event(EventKind::Acquired, &entry, wall)).chain(others);
                    outcome.events.extend(all.map(|acquired| LockEvent {
                        not_before: outage.map(|since| context.begun_after(&entry, since)),
                        ..acquired
                    }));
                }
                let is_freed = self.freed.is_free_since(source, &entry.name, sent_at);
                let id = self.insert(entry);
                self.rechecks.add(recheck_at, id);
                if is_freed {
                    self.rechecks.add_conflict(id);
                }
            }
        }
    }

    fn update(
        &mut self,
        id: Id,
        mut lock: ObservedLock,
        sent_at: Tick,
        context: &Context,
        outcome: &mut IngestOutcome,
    ) {
        let Some(old) = self.slab.get(id) else { return };
        let (source, outage) = (old.source, context.outage_since(old.read_at, sent_at));
        let renewed_at = lock.renewed_at.known().copied();
        let line = std::mem::take(&mut lock.line);
        self.sharers.keep_owner(old, &mut lock);
        let sharers = std::mem::take(&mut lock.sharers);
        let mut new = self.make(lock, source, sent_at, context);
        new.seen_begin = outage.is_none();
        let owners = self.compare_owners(id, &mut new, sharers);
        let info = &self.sources[usize::from(source)];
        let Some(old) = self.slab.get_mut(id) else { return };
        new.group = old.group;
        let sharing = owners.as_ref().map(|owners| &owners.sharing);
        let is_same = sharing.map_or_else(|| old.is_same_holding(&new), Sharing::is_same_holding);
        let generation = new.generation.as_deref().filter(|_| !is_same);
        let waited_ms = self.lines.waited(source, &old.name, generation, sent_at);
        self.lines.replace(source, &old.name, line, sent_at);
        let is_unlocked = ended_by_unlock(&mut self.unlocked, old, (is_same, sharing), sent_at);
        let mut renewed = None;
        if is_same {
            new.seen_begin = old.seen_begin;
            renewed = carry_over(old, &mut new, renewed_at, info.grain_ms, context);
            outcome.touched |= renewed.is_some();
        } else if !is_unlocked {
            self.overwrites.record(old, &new, sent_at, context);
        }
        new.long_after = context.long_after(&new, is_same.then_some(&*old), info);
        self.overwrites.mark(&mut new, sent_at, context);
        let recheck_at;
        (new.state, recheck_at) = new.diagnose_ahead(&self.gaps, info.grain_ms, context.poll_interval_ms);
        self.rechecks.add(recheck_at, id);
        let is_unchanged = is_same
            && new.owner == old.owner
            && new.state == old.state
            && new.waiters == old.waiters
            && new.generation == old.generation
            && new.owner_count == old.owner_count
            && new.ends == old.ends;
        let are_sums_unchanged =
            is_unchanged && new.deadline == old.deadline && new.acquired_at == old.acquired_at;
        if context.has_scanned {
            let seen = ScannedLock {
                is_same,
                had_holder: self.gaps.has_holder(old),
                has_holder: self.gaps.has_holder(&new),
                renewed,
                is_unlocked,
                waited_ms,
                owners,
            };
            record_change(old, &new, &seen, sent_at, context, outcome);
        }
        if new.reported_waiters() != old.reported_waiters() || !is_same {
            self.groups.remove(old.group, old.reported_waiters(), sent_at);
            self.groups.add(new.group, new.reported_waiters(), sent_at);
        }
        if new.state == LockState::DualOwner && old.state != LockState::DualOwner {
            self.groups.count_dual_owner(new.group);
        }
        outcome.changes += u32::from(!is_unchanged);
        outcome.touched |= !is_unchanged;
        // The name keeps its allocation.
        std::mem::swap(&mut new.name, &mut old.name);
        *old = new;
        if !are_sums_unchanged {
            self.order.touch(id, &self.slab);
        }
    }

    /// `None`: the lock had and has one owner. An owner that goes on as the recorded one keeps the beginning of its hold.
    fn compare_owners(&mut self, id: Id, new: &mut Entry, sharers: Vec<Sharer>) -> Option<OwnersChange> {
        let sharing = self.sharers.replace(self.slab.get(id), new, sharers)?;
        let waited = |(_, share): (usize, &Share)| {
            let generation = Some(share.generation());
            self.lines.waited(new.source, &new.name, generation, new.read_at)
        };
        let waited_ms = sharing.begun().map(waited).collect();
        if let Some(first) = sharing.now.first().filter(|_| !sharing.is_same_holding()) {
            (new.first_seen, new.seen_begin) = (first.first_seen, first.seen_begin);
            new.owner = first.owner.clone().or_else(|| new.owner.take());
        }
        Some(OwnersChange { sharing, waited_ms })
    }

    fn make(&mut self, lock: ObservedLock, source: u16, sent_at: Tick, context: &Context) -> Entry {
        let mut gaps = EntryGaps::default();
        let (owner, gap) = self.gaps.split(lock.owner.map(Some), None);
        gaps.owner = gap;
        let (lease_id, gap) = self.gaps.split(lock.lease_id.map(Some), None);
        gaps.lease_id = gap;
        let (generation, gap) = self
            .gaps
            .split(lock.generation.map(|g| Some(g.as_str().into())), None);
        gaps.generation = gap;
        let (token, gap) = self
            .gaps
            .split(lock.fencing_token.map(domain::token::FencingToken::number), 0);
        gaps.token = gap;
        let (acquired_at, gap) = self
            .gaps
            .split(lock.acquired_at.map(|at| at.timestamp_millis()), 0);
        gaps.acquired_at = gap;
        let (waiters, gap) = self.gaps.split(lock.waiter_count, 0);
        gaps.waiters = gap;
        let (ends, deadline, ttl_ms) = self.ends(lock.lifetime, sent_at, &mut gaps);
        let track_ms = if gaps.ttl == FILLED || ends == Ends::Heartbeat {
            ttl_ms
        } else {
            clamp(deadline.since(sent_at))
        };
        Entry {
            name: lock.resource.as_bytes().into(),
            owner: owner.map(|owner| self.intern_owner(owner.as_str())),
            lease_id,
            generation,
            token,
            acquired_at,
            first_seen: sent_at,
            deadline,
            read_at: sent_at,
            long_after: NEVER,
            cadence: None,
            condition: lock.condition.map(Box::new),
            track_ms,
            waiters,
            oldest_waiter_ms: clamp(lock.oldest_waiter_ms.unwrap_or(0)),
            owner_count: u16::try_from(lock.owner_count).unwrap_or(u16::MAX),
            pass: context.pass,
            gaps,
            source,
            group: 0,
            seen_begin: false,
            ends,
            state: LockState::Unknown,
        }
    }

    fn ends(&mut self, lifetime: Lifetime, sent_at: Tick, gaps: &mut EntryGaps) -> (Ends, Tick, u32) {
        use domain::reported::Reported;
        match lifetime {
            Lifetime::Leased { remaining_ms, ttl_ms } => {
                let (ttl_ms, gap) = self.gaps.split(ttl_ms, 0);
                gaps.ttl = gap;
                (Ends::Leased, sent_at.plus(remaining_ms), clamp(ttl_ms))
            }
            Lifetime::Heartbeat {
                silent_ms,
                stale_after_ms,
                why,
            } => {
                gaps.lifetime = self.gaps.split(Reported::<()>::NotApplicable(why), ()).1;
                gaps.ttl = gaps.lifetime;
                let deadline = sent_at.plus(stale_after_ms - silent_ms);
                (Ends::Heartbeat, deadline, clamp(stale_after_ms))
            }
            Lifetime::NoTtl { why } => {
                gaps.lifetime = self.gaps.split(Reported::<()>::NotApplicable(why), ()).1;
                gaps.ttl = gaps.lifetime;
                (Ends::NoTtl, sent_at, 0)
            }
            Lifetime::Session { why } => {
                gaps.lifetime = self.gaps.split(Reported::<()>::NotApplicable(why), ()).1;
                gaps.ttl = gaps.lifetime;
                (Ends::Session, sent_at, 0)
            }
            Lifetime::SessionTtl { ttl_ms, why } => {
                gaps.lifetime = self.gaps.split(Reported::<()>::Unknown(why), ()).1;
                let (ttl_ms, gap) = self.gaps.split(ttl_ms, 0);
                gaps.ttl = gap;
                (Ends::Session, sent_at, clamp(ttl_ms))
            }
            Lifetime::Unknown { why } => {
                gaps.lifetime = self.gaps.split(Reported::<()>::Unknown(why), ()).1;
                gaps.ttl = gaps.lifetime;
                (Ends::Unknown, sent_at, 0)
            }
        }
    }
}

fn clamp(ms: i64) -> u32 {
    u32::try_from(ms.max(0)).unwrap_or(u32::MAX)
}
