//! What a rule would have done: history played through the conditions and the state machine of the live rules.
//!
//! Live rules are evaluated once a second, at whole seconds; so is a preview, but it skips the seconds at which nothing can
//! change. Between two events of a lock only time passes, and every condition on one lock becomes true at most once by time
//! alone: that second is found by halving. A window of a prefix changes when something enters or leaves it.
//!
//! **Invariant:** nothing fires or resolves in a time without records, a gap. What was held before a gap counts as held
//! behind it only when a later event, or the lock as it is now, shows the same holder.

mod board;
mod counted;
mod lives;
mod lock_table;
mod prefixes;

use self::board::Board;
use self::lives::Lives;
use self::lock_table::LockTable;
use self::prefixes::Prefixes;
use super::kind::{About, Kind, Past as Known};
use super::limits::EVALUATE_EVERY_MS;
use super::past::Refused;
use super::places::Happened;
use super::round::Subject;
use super::rule::Rule;
use crate::detail::EventKind;
use crate::history::Run;
use crate::names::{BackendName, LockId, Source};

/// The rule would have fired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Firing {
    pub at: i64,
    /// None: to the end of the preview.
    pub until: Option<i64>,
    pub subject: Subject,
    pub owner: Option<String>,
    pub measure: i64,
    pub why: String,
}

/// The worst that was measured up to a moment; none where nothing was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesPoint {
    pub at: i64,
    pub measure: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Preview {
    pub from: i64,
    pub to: i64,
    /// More happened than one preview reads: `from` is later than was asked for.
    pub is_cut: bool,
    /// The newest part: what happened before `from` is still being read, and the whole preview follows.
    pub is_partial: bool,
    /// None: history cannot tell, and why.
    pub unknown: Option<String>,
    pub count: u64,
    /// The first ones, oldest first.
    pub firings: Vec<Firing>,
    pub series: Vec<SeriesPoint>,
    /// Times without records, in which nothing fires or resolves.
    pub gaps: Vec<(i64, i64)>,
    /// Rows of history that the rule looked at.
    pub events: u64,
    /// How often the condition was evaluated.
    pub evaluations: u64,
    pub locks: u64,
    /// Acquisitions, and those of them without a recorded or observed TTL, which the preview covers less exactly.
    pub acquisitions: u64,
    pub without_ttl: u64,
}

/// One row of history, borrowed from its reader.
#[derive(Debug, Clone, Copy)]
pub struct PastEvent<'e> {
    pub at: i64,
    pub kind: EventKind,
    pub owner: Option<&'e str>,
    /// As the store has it.
    pub token: Option<&'e str>,
    /// The TTL as it was recorded.
    pub ttl_ms: Option<i64>,
    /// Where no TTL is recorded: the most that was ever left of this lease.
    pub ttl_seen_ms: Option<i64>,
    /// Without a TTL: silent for longer, the holder is not renewing.
    pub stale_after_ms: Option<i64>,
    pub waiters: Option<u32>,
    pub run: Option<Run>,
}

impl PastEvent<'_> {
    /// A TTL, recorded or seen, or a time without a sign of life after which the holder is not renewing.
    fn has_limit(&self) -> bool {
        [self.ttl_ms, self.ttl_seen_ms, self.stale_after_ms]
            .iter()
            .any(Option::is_some)
    }
}

/// How late a backend is read, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanTimes {
    pub poll_ms: i64,
    /// How coarse it tells time.
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

/// What a preview asks of the present.
pub trait Present {
    fn scan_times(&self, backend: &BackendName, source: &Source) -> Option<ScanTimes>;

    fn holder(&self, lock: &LockId) -> HolderNow;
}

/// Rules that are played over the same events in one go.
pub struct Playback<'r> {
    table: LockTable,
    replays: Vec<Replay<'r>>,
}

struct Replay<'r> {
    follows: Follows<'r>,
    board: Board,
}

enum Follows<'r> {
    Locks(Box<Lives<'r>>),
    Prefixes(Box<Prefixes<'r>>),
}

impl<'r> Playback<'r> {
    /// Of rules whose past is in events.
    pub fn new(rules: impl IntoIterator<Item = &'r Rule>, from: i64, to: i64) -> Self {
        let replays = rules.into_iter().map(|rule| Replay {
            board: Board::new(rule, from, to),
            follows: match rule.condition.kind.about() {
                About::Prefix => Follows::Prefixes(Box::new(Prefixes::new(rule, from))),
                About::Lock | About::Backend => Follows::Locks(Box::new(Lives::new(rule))),
            },
        });
        let replays: Vec<Replay<'r>> = replays.collect();
        let of_prefixes = replays
            .iter()
            .any(|replay| matches!(replay.follows, Follows::Prefixes(_)));
        Self {
            table: LockTable::new(of_prefixes),
            replays,
        }
    }

    /// Refused acquires of the time, before the first event.
    pub fn refused(&mut self, all: &[Refused]) {
        for replay in &mut self.replays {
            if let Follows::Prefixes(prefixes) = &mut replay.follows {
                prefixes.refused(&mut self.table, all);
            }
        }
    }

    /// The next event, in the order in which events were recorded. One with a name that no backend has is passed over.
    pub fn event(
        &mut self,
        present: &dyn Present,
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
        for Replay { follows, board } in &mut self.replays {
            match follows {
                Follows::Locks(lives) => lives.event(number, &lock, event, board),
                Follows::Prefixes(prefixes) => prefixes.event(number, &lock, event, board),
            }
        }
    }

    fn make_room(&mut self) {
        if !self.table.is_full() {
            return;
        }
        let replays = &self.replays;
        let is_held = |number| {
            replays.iter().any(|replay| match &replay.follows {
                Follows::Locks(lives) => lives.is_held(number),
                Follows::Prefixes(prefixes) => prefixes.is_held(number),
            })
        };
        for number in self.table.forget_half(&is_held) {
            for replay in &mut self.replays {
                match &mut replay.follows {
                    Follows::Locks(lives) => lives.forget(number),
                    Follows::Prefixes(prefixes) => prefixes.forget(number),
                }
            }
        }
    }

    /// A time without records, in order with the events.
    pub fn gap(&mut self, began: i64, ended: i64) {
        for Replay { follows, board } in &mut self.replays {
            match follows {
                Follows::Locks(lives) => lives.gap(&self.table, (began, ended), board),
                Follows::Prefixes(prefixes) => prefixes.gap(&self.table, (began, ended), board),
            }
            board.gap(began, ended);
        }
    }

    pub fn finish(self, present: &dyn Present) -> Vec<Preview> {
        let Self { table, replays } = self;
        let done = replays.into_iter().map(|Replay { follows, mut board }| {
            let to = board.to();
            match follows {
                Follows::Locks(mut lives) => lives.finish(&table, present, to, &mut board),
                Follows::Prefixes(mut prefixes) => prefixes.finish(&table, to, &mut board),
            }
            board.finish(table.seen())
        });
        done.collect()
    }
}

impl Preview {
    /// Of a rule whose condition counts what was recorded elsewhere than in events; `all` is in the order of its times.
    pub fn of_counts(rule: &Rule, (from, to): (i64, i64), all: &[Happened]) -> Self {
        counted::preview(rule, (from, to), all)
    }

    /// Of a rule whose past is not kept.
    pub fn unknown(rule: &Rule, (from, to): (i64, i64)) -> Self {
        let mut preview = Board::new(rule, from, to).finish(0);
        if let Known::NotKept(why) = rule.condition.kind.info().past {
            preview.unknown = Some(why.to_owned());
            preview.series.clear();
        }
        preview
    }
}

impl Kind {
    /// The events that a preview of a rule on this condition needs.
    pub const fn previewed_events(self) -> &'static [EventKind] {
        use EventKind::{Acquired, Expired, FewerWaiting, Reclaimed, Released, Renewed, Revoked, Waiting};
        match self {
            Self::LongHeld => &[Acquired, Reclaimed, Released, Expired, Revoked],
            Self::NearExpiry | Self::NotRenewing | Self::HoldNearTtl => {
                &[Acquired, Reclaimed, Renewed, Released, Expired, Revoked]
            }
            Self::Contention | Self::WaitP95 => &[
                Acquired,
                Reclaimed,
                Waiting,
                FewerWaiting,
                Released,
                Expired,
                Revoked,
            ],
            Self::LeaseLosses => &[Acquired, Reclaimed, Released, Expired, Revoked],
            _ => &[],
        }
    }
}

/// The first evaluation at a moment or behind it.
const fn next_evaluation(at: i64) -> i64 {
    at + (-at).rem_euclid(EVALUATE_EVERY_MS)
}

/// The last evaluation at a moment or before it.
const fn last_evaluation(at: i64) -> i64 {
    at - at.rem_euclid(EVALUATE_EVERY_MS)
}
