//! Events derived from two readings of one lock: renewals, ends, new owners, queue changes.

use chrono::{DateTime, Utc};
use domain::lock_detail::EventKind;
use domain::renewal_interval::Cadence;
use domain::tick::Tick;

use super::{BETTER_BY_MS, Context, IngestOutcome};
use crate::entry::{Ends, Entry};
use crate::events::LockEvent;
use crate::missing_reasons::FILLED;
use crate::sharers::{Share, Sharing};

/// The same acquisition read again: keeps learnt values. Returns the time of a renewal, if
/// there was one.
pub(super) fn carry_over(
    old: &mut Entry,
    new: &mut Entry,
    renewed_at: Option<DateTime<Utc>>,
    grain_ms: i64,
    context: &Context,
) -> Option<Tick> {
    new.first_seen = old.first_seen;
    // Without a token, history and alerts identify the holding by the owner that it was first read with.
    if new.reported_token().is_none()
        && let (Some(first), Some(owner)) = (&old.owner, &mut new.owner)
    {
        owner.clone_from(first);
    }
    if new.gaps.ttl != FILLED && new.ends != Ends::Heartbeat {
        new.track_ms = new.track_ms.max(old.track_ms);
    }
    new.cadence = old.cadence.take();
    if new.ends != old.ends || !matches!(new.ends, Ends::Leased | Ends::Heartbeat) {
        return None;
    }
    let gain_ms = new.deadline.since(old.deadline);
    let tolerance = grain_ms + 250;
    if gain_ms.abs() <= tolerance {
        // Both readings are lower bounds of one deadline: the later is better, if the gain is
        // large enough. Frequent small heartbeats must add up to a renewal.
        if gain_ms < BETTER_BY_MS || new.ends == Ends::Heartbeat {
            new.deadline = old.deadline;
        }
        return None;
    }
    if gain_ms < 0 {
        return None;
    }
    let renewed_tick = renewed_at.map(|at| context.tick_of(at));
    let renewed = renewed_tick
        .unwrap_or_else(|| new.deadline.plus(-i64::from(new.track_ms)))
        .clamp(old.read_at, new.read_at);
    let low_ms = old.deadline.since(renewed);
    let used_ms = i64::from(new.track_ms) - low_ms;
    match &mut new.cadence {
        Some(cadence) => cadence.renewed(renewed, low_ms, used_ms),
        None => new.cadence = Some(Box::new(Cadence::begin(renewed, low_ms, used_ms))),
    }
    Some(renewed)
}

/// Differences between two readings of one lock.
pub(super) struct ScannedLock {
    /// The same holding.
    pub(super) is_same: bool,
    pub(super) had_holder: bool,
    pub(super) has_holder: bool,
    pub(super) renewed: Option<Tick>,
    /// The old holding was force-released by this console.
    pub(super) is_unlocked: bool,
    /// Wait of the new holder, if it had waited.
    pub(super) waited_ms: Option<i64>,
    /// For a lock that is or was shared.
    pub(super) owners: Option<OwnersChange>,
}

/// The owners of a shared lock at two readings.
pub(super) struct OwnersChange {
    pub(super) sharing: Sharing,
    /// Waits of the new owners, in the same order.
    pub(super) waited_ms: Vec<Option<i64>>,
}

/// Records the events between two readings of one lock.
pub(super) fn record_change(
    old: &Entry,
    new: &Entry,
    seen: &ScannedLock,
    at: Tick,
    context: &Context,
    outcome: &mut IngestOutcome,
) {
    let outage = context.outage_since(old.read_at, at);
    let wall = context.wall(context.dated(at, outage));
    let not_before = outage.map(|since| context.wall(since));
    if let Some(renewed) = seen.renewed {
        outcome
            .events
            .push(event(EventKind::Renewed, new, context.wall(renewed)));
    }
    if let Some(owners) = &seen.owners {
        return record_owners((old, new), seen, owners, at, context, outcome);
    }
    if !seen.is_same {
        // A token that rose by more than one: other holders in between were too brief to be
        // observed.
        let are_known = old.gaps.token == FILLED && new.gaps.token == FILLED;
        let is_sampled = context.counts_grants && are_known && new.token > old.token.saturating_add(1);
        let ended = ending(old, seen.is_unlocked, at, context);
        let kind = if seen.had_holder && ended.kind == EventKind::Expired {
            EventKind::Reclaimed
        } else {
            EventKind::Acquired
        };
        if seen.had_holder {
            outcome.events.push(LockEvent { is_sampled, ..ended });
        }
        if seen.has_holder {
            outcome.events.push(LockEvent {
                is_sampled,
                not_before: outage.map(|since| context.begun_after(new, since)),
                ..event(kind, new, wall)
            });
        }
        if seen.has_holder && seen.waited_ms.is_some() {
            outcome.events.push(LockEvent {
                waited_ms: seen.waited_ms,
                is_sampled,
                not_before,
                ..event(EventKind::GrantedAfterWait, new, wall)
            });
        }
    } else {
        outcome.events.extend(queue_change(old, new, wall, not_before));
    }
}

fn queue_change(
    old: &Entry,
    new: &Entry,
    at: DateTime<Utc>,
    not_before: Option<DateTime<Utc>>,
) -> Option<LockEvent> {
    if new.gaps.waiters != FILLED || new.waiters == old.reported_waiters() {
        return None;
    }
    let kind = if new.waiters > old.reported_waiters() {
        EventKind::Waiting
    } else {
        EventKind::FewerWaiting
    };
    Some(LockEvent {
        not_before,
        ..event(kind, new, at)
    })
}

/// Records which owners of a shared lock are gone and which are new. The hold of each of the others goes on.
fn record_owners(
    (old, new): (&Entry, &Entry),
    seen: &ScannedLock,
    OwnersChange { sharing, waited_ms }: &OwnersChange,
    at: Tick,
    context: &Context,
    outcome: &mut IngestOutcome,
) {
    let outage = context.outage_since(old.read_at, at);
    let wall = context.wall(context.dated(at, outage));
    let not_before = outage.map(|since| context.wall(since));
    let is_over = sharing.is_over();
    let end = ending(old, seen.is_unlocked, at, context);
    let is_reclaimed = seen.had_holder && end.kind == EventKind::Expired;
    if seen.had_holder {
        let others = sharing.ended().filter(|(place, _)| *place > 0);
        outcome
            .events
            .extend(others.map(|(_, share)| share_end(share, old, at, context)));
        if sharing.ended().any(|(place, _)| place == 0) {
            let kind = if is_over {
                end.kind
            } else {
                EventKind::ShareReleased
            };
            outcome.events.push(LockEvent { kind, ..end });
        }
    }
    let mut has_begun = false;
    let begun = sharing.begun().zip(waited_ms).filter(|_| seen.has_holder);
    for ((place, share), waited_ms) in begun {
        has_begun = true;
        let kind = match (is_over && place == 0, is_reclaimed) {
            (false, _) => EventKind::ShareAcquired,
            (true, false) => EventKind::Acquired,
            (true, true) => EventKind::Reclaimed,
        };
        outcome.events.push(LockEvent {
            not_before: outage.map(|since| context.begun_after(new, since)),
            ..share_event(kind, share, new, wall)
        });
        if waited_ms.is_some() {
            outcome.events.push(LockEvent {
                waited_ms: *waited_ms,
                not_before,
                ..share_event(EventKind::GrantedAfterWait, share, new, wall)
            });
        }
    }
    if !has_begun {
        outcome.events.extend(queue_change(old, new, wall, not_before));
    }
}

/// An event of one owner of a shared lock.
pub(super) fn share_event(kind: EventKind, share: &Share, entry: &Entry, at: DateTime<Utc>) -> LockEvent {
    LockEvent {
        owner: share.owner.clone(),
        token: share.token,
        ..event(kind, entry, at)
    }
}

/// The end of the hold of an owner that is not the recorded one.
fn share_end(share: &Share, entry: &Entry, at: Tick, context: &Context) -> LockEvent {
    let begin = share.seen_begin.then_some(share.first_seen);
    LockEvent {
        kind: EventKind::ShareReleased,
        owner: share.owner.clone(),
        token: share.token,
        ..ending_since(begin, entry, false, at, context)
    }
}

/// The ends of a lock that is gone: of its other owners, then its own.
pub(super) fn endings(
    entry: &Entry,
    shares: &[Share],
    is_unlocked: bool,
    at: Tick,
    context: &Context,
) -> impl Iterator<Item = LockEvent> {
    let others = shares.iter().skip(1);
    others
        .map(move |share| share_end(share, entry, at, context))
        .chain(std::iter::once(ending(entry, is_unlocked, at, context)))
}

/// How a holding that is gone has ended.
fn ending(entry: &Entry, is_unlocked: bool, at: Tick, context: &Context) -> LockEvent {
    let begin = if entry.gaps.acquired_at == FILLED {
        DateTime::from_timestamp_millis(entry.acquired_at).map(|acquired| context.tick_of(acquired))
    } else {
        entry.seen_begin.then_some(entry.first_seen)
    };
    ending_since(begin, entry, is_unlocked, at, context)
}

fn ending_since(
    begin: Option<Tick>,
    entry: &Entry,
    is_unlocked: bool,
    at: Tick,
    context: &Context,
) -> LockEvent {
    let is_dead = entry.ends == Ends::Leased && entry.deadline <= at;
    let kind = match (is_unlocked, is_dead) {
        (true, _) => EventKind::Revoked,
        (false, true) => EventKind::Expired,
        (false, false) => EventKind::Released,
    };
    // Unobserved, the holder may have renewed or released: it ended at any time since the last
    // reading.
    let outage = context.outage_since(entry.read_at, at);
    let at = context.dated(at, outage);
    let ended = if is_dead { entry.deadline } else { at };
    let (earliest, latest) = outage.map_or((ended, ended), |since| (since, at));
    let end = Tick(earliest.0 + latest.since(earliest) / 2);
    LockEvent {
        held_ms: begin.map(|begin| end.since(begin).max(0)),
        is_held_uncertain: begin.is_some() && outage.is_some(),
        not_before: outage.map(|since| context.wall(since)),
        ttl_ms: None,
        ttl_seen_ms: None,
        stale_after_ms: None,
        waiters: None,
        ..event(kind, entry, context.wall(at))
    }
}

pub(super) fn event(kind: EventKind, entry: &Entry, at: DateTime<Utc>) -> LockEvent {
    LockEvent {
        kind,
        at,
        source: entry.source,
        name: entry.name.clone(),
        owner: entry.owner.clone(),
        token: (entry.gaps.token == FILLED).then_some(entry.token),
        group: entry.group,
        ttl_ms: (entry.ends == Ends::Leased && entry.gaps.ttl == FILLED).then_some(entry.track_ms),
        ttl_seen_ms: (entry.ends == Ends::Leased && entry.gaps.ttl != FILLED).then_some(entry.track_ms),
        stale_after_ms: (entry.ends == Ends::Heartbeat).then_some(entry.track_ms),
        waiters: (entry.gaps.waiters == FILLED).then_some(entry.waiters),
        held_ms: None,
        is_held_uncertain: false,
        not_before: None,
        waited_ms: None,
        is_sampled: false,
    }
}
