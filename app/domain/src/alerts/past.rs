//! What is remembered of events: how long each lock is usually held, and what happened to each prefix lately. Fed with the
//! rows of history, live and in the preview alike.

use std::collections::{HashMap, VecDeque};
use std::sync::OnceLock;

use super::limits::WINDOW_MS_MAX;
use super::refusal_counts::RefusalCounts;
use crate::detail::EventKind;
use crate::history::HistoryEvent;
use crate::history::template::template;
use crate::names::{BackendName, LockId, Resource};

/// Holds of one lock that are remembered, newest last; and how many of them a p95 takes. Four bytes each: of as many locks
/// as are remembered they are 26 MB.
const HOLDS_KEPT: usize = 64;
pub const SAMPLES_MIN: usize = 8;
/// Entries of one prefix, and locks and prefixes, that are remembered at a time.
const ENTRIES_MAX: usize = 20_000;
const LOCKS_MAX: usize = 100_000;
const PREFIXES_MAX: usize = 5_000;

#[derive(Debug, Default)]
pub struct Past {
    pub(super) locks: HashMap<LockId, Track>,
    pub(super) prefixes: HashMap<(BackendName, String), Window>,
    refused: HashMap<(BackendName, String), RefusalCounts>,
    /// Holdings begun, and those of them without a TTL told.
    pub(super) holdings: u64,
    pub(super) without_ttl: u64,
    /// How often old locks made room.
    forgotten: u64,
}

/// Acquires that were not granted, by template: who asks in vain leaves no other trace. The lease service alone tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub at: i64,
    pub backend: BackendName,
    pub prefix: String,
    pub times: u64,
}

/// One lock.
#[derive(Debug, Default)]
pub(super) struct Track {
    /// When it was told of last.
    touched_at: i64,
    pub(super) open: Option<Open>,
    pub(super) holds_ms: VecDeque<u32>,
    p95: OnceLock<Option<i64>>,
}

/// A holding that goes on.
#[derive(Debug, Clone)]
pub(super) struct Open {
    pub(super) at: i64,
    pub(super) ttl_ms: Option<i64>,
    pub(super) renewals: u32,
    waiting_since: Option<i64>,
}

/// One prefix of one backend: what happened, oldest first.
#[derive(Debug, Default)]
pub(super) struct Window {
    pub(super) entries: VecDeque<(i64, Entry, Resource)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    Acquired,
    /// The first waiter of a holding came.
    Contended,
    /// Somebody who waited got it, after so many milliseconds.
    Waited(i64),
    /// A holding that never renewed ended, after `ms` of `ttl_ms`.
    Held {
        ms: i64,
        ttl_ms: i64,
    },
    Lost,
}

impl Past {
    /// One more event. They come in the order of their times.
    pub fn apply(&mut self, event: &HistoryEvent) {
        let id = LockId {
            backend: event.backend.clone(),
            source: event.source.clone(),
            resource: event.resource.clone(),
        };
        match event.kind {
            EventKind::Unwatched => return self.gap(),
            EventKind::WatchedAgain => return,
            _ => {}
        }
        if self.locks.len() >= LOCKS_MAX && !self.locks.contains_key(&id) {
            self.forget_half();
        }
        let prefix = (event.backend.clone(), template(event.resource.as_bytes()));
        let track = self.locks.entry(id).or_default();
        track.touched_at = event.at;
        let mut entries = Vec::with_capacity(3);
        match event.kind {
            EventKind::Acquired | EventKind::Reclaimed => {
                if let Some(from) = track.open.take().and_then(|open| open.waiting_since) {
                    entries.push(Entry::Waited(event.at - from));
                } else if let Some(from) = track.waiting() {
                    entries.push(Entry::Waited(event.at - from));
                }
                entries.push(Entry::Acquired);
                self.holdings += 1;
                self.without_ttl += u64::from(event.ttl_ms.is_none());
                track.open = Some(Open {
                    at: event.at,
                    ttl_ms: event.ttl_ms,
                    renewals: 0,
                    waiting_since: None,
                });
                if event.waiters.is_some_and(|waiters| waiters > 0) {
                    entries.extend(track.waits_from(event.at));
                }
            }
            EventKind::Renewed => {
                if let Some(open) = &mut track.open {
                    open.renewals += event.run.map_or(1, |run| run.count);
                    open.ttl_ms = event.ttl_ms.or(open.ttl_ms);
                }
            }
            EventKind::Waiting => entries.extend(track.waits_from(event.at)),
            EventKind::FewerWaiting if event.waiters == Some(0) => {
                entries.extend(track.waits_no_more(event.at))
            }
            EventKind::Released | EventKind::Expired | EventKind::Revoked => {
                entries.extend(track.ended(event));
            }
            // Of a refused write the ledger tells; of a late renewal, the expiry before it; of a wait, the grant beside it.
            EventKind::FewerWaiting
            | EventKind::GrantedAfterWait
            | EventKind::Rejected
            | EventKind::Lost
            | EventKind::Unwatched
            | EventKind::WatchedAgain => {}
        }
        self.note(prefix, event, entries);
    }

    fn note(&mut self, prefix: (BackendName, String), event: &HistoryEvent, entries: Vec<Entry>) {
        if entries.is_empty() || (self.prefixes.len() >= PREFIXES_MAX && !self.prefixes.contains_key(&prefix))
        {
            return;
        }
        let window = self.prefixes.entry(prefix).or_default();
        let at = event.at;
        let named = entries
            .into_iter()
            .map(|entry| (at, entry, event.resource.clone()));
        window.entries.extend(named);
        while window.entries.len() > ENTRIES_MAX
            || window
                .entries
                .front()
                .is_some_and(|(then, ..)| *then < at - WINDOW_MS_MAX)
        {
            window.entries.pop_front();
        }
    }

    /// The half that was told of longest ago makes room, of those that nobody holds if they are many enough: names that are
    /// used once, of jobs and orders, come without end.
    fn forget_half(&mut self) {
        self.forgotten += 1;
        let free = self.locks.values().filter(|track| track.open.is_none());
        let mut times: Vec<i64> = free.map(|track| track.touched_at).collect();
        let are_held_kept = times.len() > LOCKS_MAX / 4;
        if !are_held_kept {
            times = self.locks.values().map(|track| track.touched_at).collect();
        }
        let middle = times.len() / 2;
        let (_, oldest_kept, _) = times.select_nth_unstable(middle);
        let oldest_kept = *oldest_kept;
        self.locks
            .retain(|_, track| track.touched_at > oldest_kept || (are_held_kept && track.open.is_some()));
    }

    /// Replaces the refusals from `since` on with these, which are in the order of their times.
    pub fn refused(&mut self, since: i64, all: Vec<Refused>) {
        self.refused.retain(|_, counts| {
            counts.truncate(since);
            !counts.is_empty()
        });
        for one in all.into_iter().filter(|one| one.at >= since) {
            let of = self.refused.entry((one.backend, one.prefix)).or_default();
            of.add(one.at, one.times);
        }
    }

    /// Refusals before `from` are in no window any more.
    pub fn forget_refused(&mut self, from: i64) {
        self.refused.retain(|_, counts| {
            counts.forget(from);
            !counts.is_empty()
        });
    }

    /// How many were refused behind `since` and up to `now`.
    pub(super) fn refused_in(&self, key: &(BackendName, String), since: i64, now: i64) -> i64 {
        let count = self
            .refused
            .get(key)
            .map_or(0, |counts| counts.between(since, now));
        i64::try_from(count).unwrap_or(i64::MAX / 2_000)
    }

    /// Of every prefix, also where there were refusals alone.
    pub(super) fn windows(&self) -> impl Iterator<Item = (&(BackendName, String), &Window)> {
        static NONE: Window = Window {
            entries: VecDeque::new(),
        };
        let alone = self
            .refused
            .keys()
            .filter(|key| !self.prefixes.contains_key(*key));
        self.prefixes.iter().chain(alone.map(|key| (key, &NONE)))
    }

    /// Nobody looked for a while: what goes on now may have begun since.
    pub fn gap(&mut self) {
        for track in self.locks.values_mut() {
            track.open = None;
        }
    }

    /// Rises when hold times of many locks are forgotten.
    pub const fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// How long this lock is usually held; none before it was seen often enough.
    pub fn p95_ms(&self, id: &LockId) -> Option<i64> {
        self.locks.get(id)?.p95_ms()
    }
}

impl Track {
    fn waiting(&self) -> Option<i64> {
        self.open.as_ref()?.waiting_since
    }

    fn waits_from(&mut self, at: i64) -> Option<Entry> {
        let open = self.open.as_mut()?;
        let is_first = open.waiting_since.is_none();
        open.waiting_since.get_or_insert(at);
        is_first.then_some(Entry::Contended)
    }

    /// Nobody waits any more although nobody got it: they gave up.
    fn waits_no_more(&mut self, at: i64) -> Option<Entry> {
        let from = self.open.as_mut()?.waiting_since.take()?;
        Some(Entry::Waited((at - from).max(0)))
    }

    fn ended(&mut self, event: &HistoryEvent) -> Vec<Entry> {
        let Some(open) = self.open.take() else {
            return Vec::new();
        };
        let ms = (event.at - open.at).max(0);
        // First out, then in: one more than fits would double the room for all.
        if self.holds_ms.len() == HOLDS_KEPT {
            self.holds_ms.pop_front();
        }
        // What is held for longer than seven weeks was held for seven weeks.
        self.holds_ms.push_back(u32::try_from(ms).unwrap_or(u32::MAX));
        self.p95 = OnceLock::new();
        let mut entries = Vec::new();
        if event.kind == EventKind::Expired {
            entries.push(Entry::Lost);
        }
        if let Some(ttl_ms) = open.ttl_ms.filter(|_| open.renewals == 0) {
            entries.push(Entry::Held { ms, ttl_ms });
        }
        if let Some(from) = open.waiting_since {
            // Whoever waited gets it now, or gives up: we are not told which.
            entries.push(Entry::Waited((event.at - from).max(0)));
        }
        entries
    }

    pub(super) fn p95_ms(&self) -> Option<i64> {
        *self.p95.get_or_init(|| {
            let mut holds: Vec<i64> = self.holds_ms.iter().map(|ms| i64::from(*ms)).collect();
            (holds.len() >= SAMPLES_MIN).then(|| quantile(&mut holds, 95))
        })
    }
}

/// The value that so many per cent do not exceed; 0 of none.
pub(super) fn quantile(values: &mut [i64], percent: usize) -> i64 {
    values.sort_unstable();
    let at = (values.len() * percent).div_ceil(100).saturating_sub(1);
    values.get(at).copied().unwrap_or(0)
}
