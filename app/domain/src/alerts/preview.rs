//! Preview of a rule: replays history through the conditions and the state machine of the live
//! rules.
//!
//! Live rules are evaluated once a second, at whole seconds; so is a preview, but it skips
//! seconds at which nothing can change. Between two events of a lock only time passes, and each
//! condition on one lock becomes true at most once by time alone: that second is found by
//! bisection. A window of a prefix changes when an entry enters or leaves it.
//!
//! **Invariant:** nothing fires or resolves in a gap (time without records) or in an outage of a
//! backend. A holding from before a gap continues after it only if a later event, or the current
//! state of the lock, shows the same holder.
//!
//! A playback can be cloned, and continued with later events: it does not know its end before
//! [`Playback::finish`].

mod count_replay;
mod lock_replay;
mod lock_table;
mod prefix_replay;
mod preview_output;

use std::sync::Arc;

use self::lock_replay::LockReplay;
use self::lock_table::LockTable;
use self::prefix_replay::Prefixes;
use self::preview_output::PreviewOutput;
use super::backend_conditions::CountedEvent;
use super::baseline::RefusedAcquire;
use super::condition_kind::{ConditionKind, HistorySource, SubjectKind};
use super::evaluate::Subject;
use super::holdings::HolderKey;
use super::limits::EVALUATE_EVERY_MS;
use super::rule::Rule;
use super::rule_windows::RuleWindows;
use crate::history::Run;
use crate::lock_detail::EventKind;
use crate::names::{BackendName, LockId, Source};

/// An interval in which the rule would have fired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Firing {
    pub at: i64,
    /// `None`: until the end of the preview.
    pub until: Option<i64>,
    pub subject: Subject,
    pub owner: Option<String>,
    pub measure: i64,
    pub why: String,
}

/// The worst measure up to a moment; `None` without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesPoint {
    pub at: i64,
    pub measure: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Preview {
    pub from: i64,
    pub to: i64,
    /// The range has more events than a preview reads: `from` is later than requested.
    pub is_cut: bool,
    /// Newest part only; the rest before `from` is still being read and the complete preview
    /// follows.
    pub is_partial: bool,
    /// Reason why history cannot answer; `None` if it can.
    pub unknown: Option<String>,
    pub count: u64,
    /// Capped list, oldest first.
    pub firings: Vec<Firing>,
    pub series: Vec<SeriesPoint>,
    /// Longest hold up to each moment, in milliseconds; only for a rule that measures holds
    /// against their own history.
    pub held: Vec<SeriesPoint>,
    /// Times without records, in which nothing fires or resolves.
    pub gaps: Vec<(i64, i64)>,
    /// Outages of single backends, in which nothing about their locks fires or resolves.
    pub outages: u64,
    /// Rows of history that were read.
    pub events: u64,
    /// Number of evaluations.
    pub evaluations: u64,
    pub locks: u64,
    /// Acquisitions, and those without a recorded or observed TTL, for which the preview is
    /// less exact.
    pub acquisitions: u64,
    pub without_ttl: u64,
    /// Holds that began or ended in an outage of their backend: their length is uncertain.
    pub uncertain_holds: u64,
    /// Events of prefixes beyond the limit, which no window counts.
    pub uncounted: u64,
}

/// Time without observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The backend that was not observed; `None`: nothing was recorded at all.
    pub backend: Option<BackendName>,
    pub began: i64,
    pub ended: i64,
}

/// One row of history, borrowed from its reader.
#[derive(Debug, Clone, Copy)]
pub struct PastEvent<'e> {
    pub at: i64,
    pub kind: EventKind,
    pub owner: Option<&'e str>,
    /// As stored.
    pub token: Option<&'e str>,
    pub ttl_ms: Option<i64>,
    /// If no TTL is recorded: the largest time left that was observed for this lease.
    pub ttl_seen_ms: Option<i64>,
    /// Without a TTL: silence longer than this counts as not renewing.
    pub stale_after_ms: Option<i64>,
    /// First seen after an outage of its backend: it happened since this time.
    pub not_before: Option<i64>,
    pub waiters: Option<u32>,
    pub run: Option<Run>,
}

impl PastEvent<'_> {
    fn holder(&self) -> HolderKey {
        HolderKey::new(self.owner, self.token.and_then(|token| token.parse().ok()))
    }

    /// Has a TTL (recorded or observed) or a silence limit.
    fn has_limit(&self) -> bool {
        [self.ttl_ms, self.ttl_seen_ms, self.stale_after_ms]
            .iter()
            .any(Option::is_some)
    }
}

/// Delay between a change and its observation, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanTimes {
    pub poll_interval_ms: i64,
    /// Clock resolution of the backend.
    pub grain_ms: i64,
}

/// The holder of a lock at the end of the preview.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HolderNow {
    Held {
        owner: Option<String>,
        token: Option<String>,
    },
    Free,
    /// Its backend is not observed now.
    Unknown,
}

/// Current state that a preview needs.
pub trait CurrentState {
    fn scan_times(&self, backend: &BackendName, source: &Source) -> Option<ScanTimes>;

    fn holder(&self, lock: &LockId) -> HolderNow;

    /// Since when the backend has not been observed, if it is not observed now.
    fn unobserved_since(&self, backend: &BackendName) -> Option<i64>;
}

/// Rules that are replayed together over the same events.
#[derive(Clone)]
pub struct Playback {
    table: LockTable,
    replays: Vec<Replay>,
}

#[derive(Clone)]
struct Replay {
    subjects: SubjectReplay,
    preview: PreviewOutput,
}

#[derive(Clone)]
enum SubjectReplay {
    Locks(Box<LockReplay>),
    Prefixes(Box<Prefixes>),
}

impl Playback {
    /// Rules whose past consists of events. `to_max` is the latest possible end.
    pub fn new<'r>(rules: impl IntoIterator<Item = &'r Rule>, from: i64, to_max: i64) -> Self {
        let replays = rules.into_iter().map(|rule| {
            let preview = PreviewOutput::new(rule, from, to_max);
            let rule = Arc::new(rule.clone());
            let subjects = match rule.condition.kind.about() {
                SubjectKind::Prefix => SubjectReplay::Prefixes(Box::new(Prefixes::new(rule, from))),
                SubjectKind::Lock | SubjectKind::Backend => {
                    SubjectReplay::Locks(Box::new(LockReplay::new(rule)))
                }
            };
            Replay { subjects, preview }
        });
        let replays: Vec<Replay> = replays.collect();
        let of_prefixes = replays
            .iter()
            .any(|replay| matches!(replay.subjects, SubjectReplay::Prefixes(_)));
        Self {
            table: LockTable::new(of_prefixes),
            replays,
        }
    }

    /// Replaces the refused acquires since a time; call before the events of that time.
    pub fn refused(&mut self, since: i64, all: &[RefusedAcquire]) {
        for replay in &mut self.replays {
            if let SubjectReplay::Prefixes(prefixes) = &mut replay.subjects {
                prefixes.refused(&mut self.table, since, all);
            }
        }
    }

    /// Number of locks that it tracks.
    pub const fn locks(&self) -> usize {
        self.table.used()
    }

    /// The next event, in recorded order. Events with an invalid backend name are skipped.
    pub fn event(
        &mut self,
        present: &dyn CurrentState,
        (backend, source): (&str, &str),
        resource: &[u8],
        event: &PastEvent<'_>,
    ) {
        let Some(number) = self.table.find(backend, source, resource) else {
            self.make_room();
            let Some(number) = self.table.add(present, (backend, source), resource) else {
                return;
            };
            return self.event_of(number, event);
        };
        self.event_of(number, event);
    }

    fn event_of(&mut self, number: u32, event: &PastEvent<'_>) {
        self.table.touch(number, event.at);
        let lock = self.table.lock(number);
        for Replay { subjects, preview } in &mut self.replays {
            match subjects {
                SubjectReplay::Locks(locks) => locks.event(number, &lock, event, preview),
                SubjectReplay::Prefixes(prefixes) => prefixes.event(number, &lock, event, preview),
            }
        }
    }

    fn make_room(&mut self) {
        if !self.table.is_full() {
            return;
        }
        let replays = &self.replays;
        let is_held = |number| {
            replays.iter().any(|replay| match &replay.subjects {
                SubjectReplay::Locks(locks) => locks.is_held(number),
                SubjectReplay::Prefixes(prefixes) => prefixes.is_held(number),
            })
        };
        for number in self.table.forget_half(&is_held) {
            for replay in &mut self.replays {
                match &mut replay.subjects {
                    SubjectReplay::Locks(locks) => locks.forget(number),
                    SubjectReplay::Prefixes(prefixes) => prefixes.forget(number),
                }
            }
        }
    }

    /// A time without observation, in order with the events.
    pub fn gap(&mut self, gap: &Gap) {
        // Holdings that are open at a gap are resolved at their next event.
        self.table.gap(gap);
        for Replay { subjects, preview } in &mut self.replays {
            if let SubjectReplay::Prefixes(prefixes) = subjects {
                prefixes.gap(&self.table, gap, preview);
            }
            preview.gap(gap);
        }
    }

    /// Ends at `to`.
    pub fn finish(self, present: &dyn CurrentState, to: i64) -> Vec<Preview> {
        let Self { table, replays } = self;
        let done = replays.into_iter().map(
            |Replay {
                 subjects,
                 mut preview,
             }| {
                match subjects {
                    SubjectReplay::Locks(mut locks) => locks.finish(&table, present, to, &mut preview),
                    SubjectReplay::Prefixes(mut prefixes) => {
                        prefixes.finish(&table, present, to, &mut preview)
                    }
                }
                preview.finish(table.seen(), to)
            },
        );
        done.collect()
    }

    /// The windows of the live rules after these events.
    pub fn into_windows(self) -> Vec<RuleWindows> {
        let Self { table, replays } = self;
        let windows = replays.into_iter().filter_map(|replay| match replay.subjects {
            SubjectReplay::Locks(_) => None,
            SubjectReplay::Prefixes(prefixes) => {
                Some(prefixes.into_windows(&table, replay.preview.uncounted()))
            }
        });
        windows.collect()
    }
}

impl Preview {
    /// Preview of a rule that counts records other than events. `all` is sorted by time.
    pub fn of_counts(rule: &Rule, (from, to): (i64, i64), all: &[CountedEvent]) -> Self {
        count_replay::preview(rule, (from, to), all)
    }

    /// Preview of a rule without history.
    pub fn unknown(rule: &Rule, (from, to): (i64, i64)) -> Self {
        let mut preview = PreviewOutput::new(rule, from, to).finish(0, to);
        if let HistorySource::NotKept(why) = rule.condition.kind.info().past {
            preview.unknown = Some(why.to_owned());
            preview.series.clear();
            preview.held.clear();
        }
        preview
    }
}

impl ConditionKind {
    /// Events that a preview of this condition needs.
    pub const fn previewed_events(self) -> &'static [EventKind] {
        use EventKind::{
            Acquired, Expired, FewerWaiting, Reclaimed, Released, Renewed, Revoked, ShareAcquired,
            ShareReleased, Waiting,
        };
        match self {
            Self::LongHeld | Self::LeaseLosses => &[
                Acquired,
                Reclaimed,
                ShareAcquired,
                ShareReleased,
                Released,
                Expired,
                Revoked,
            ],
            Self::NearExpiry | Self::NotRenewing | Self::HoldNearTtl => &[
                Acquired,
                Reclaimed,
                ShareAcquired,
                ShareReleased,
                Renewed,
                Released,
                Expired,
                Revoked,
            ],
            Self::Contention | Self::WaitP95 => &[
                Acquired,
                Reclaimed,
                ShareAcquired,
                ShareReleased,
                Waiting,
                FewerWaiting,
                Released,
                Expired,
                Revoked,
            ],
            _ => &[],
        }
    }
}

/// The first evaluation at or after a moment.
const fn next_evaluation(at: i64) -> i64 {
    at + (-at).rem_euclid(EVALUATE_EVERY_MS)
}

/// The last evaluation at or before a moment.
const fn last_evaluation(at: i64) -> i64 {
    at - at.rem_euclid(EVALUATE_EVERY_MS)
}
