//! What a rule would have done: history played through the same conditions and the same machine.
//!
//! Between two events of a lock only time passes, and every condition on one lock becomes true at most once by time alone:
//! the moment is found by halving, not by trying every second.

mod lives;

use std::collections::{HashMap, HashSet};

use self::lives::Lives;
use super::kind::{About, Kind, Past as Known};
use super::machine::{Change, Phase, Sign, step};
use super::past::{Past, Refused};
use super::places::{Happened, counts, judge_counts};
use super::round::{Found, Subject};
use super::rule::Rule;
use super::windows::judge_windows;
use crate::detail::EventKind;
use crate::history::HistoryEvent;

/// Points of the series.
const POINTS: i64 = 240;
/// Firings that are kept; of more there is the count.
const FIRINGS_MAX: usize = 1_000;
/// Windows are looked at so often in their own length, and no oftener than this, in milliseconds.
const LOOKS_PER_WINDOW: i64 = 10;
const LOOK_MS_MIN: i64 = 15_000;

/// It would have fired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Firing {
    pub at: i64,
    /// None: to the end, or until nobody looked.
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
    /// None: history cannot tell, and why.
    pub unknown: Option<String>,
    pub count: u64,
    /// The first ones, oldest first.
    pub firings: Vec<Firing>,
    pub series: Vec<SeriesPoint>,
    /// Times that nobody watched.
    pub gaps: Vec<(i64, i64)>,
    pub events: u64,
    pub locks: u64,
    /// Acquisitions, and those of them without a TTL recorded: of them less can be told.
    pub acquisitions: u64,
    pub without_ttl: u64,
}

/// One rule, played over a time.
pub struct Replay<'a> {
    rule: &'a Rule,
    lives: Lives,
    past: Past,
    board: Board,
    /// Of prefixes and of what was recorded.
    phases: HashMap<Subject, (Option<Phase>, usize)>,
    next_look: i64,
}

/// What comes out.
pub(super) struct Board {
    preview: Preview,
    is_falling: bool,
    gap_since: Option<i64>,
}

impl<'a> Replay<'a> {
    pub fn new(rule: &'a Rule, from: i64, to: i64) -> Self {
        let mut preview = Preview {
            from,
            to,
            ..Preview::default()
        };
        if let Known::NotKept(why) = rule.condition.kind.info().past {
            preview.unknown = Some(why.to_owned());
        } else {
            let point = |index| SeriesPoint {
                at: from + (to - from) * (index + 1) / POINTS,
                measure: None,
            };
            preview.series = (0..POINTS).map(point).collect();
        }
        Self {
            rule,
            lives: Lives::default(),
            past: Past::default(),
            board: Board {
                preview,
                is_falling: rule.condition.kind == Kind::NearExpiry,
                gap_since: None,
            },
            phases: HashMap::new(),
            next_look: from,
        }
    }

    /// Who was refused in the time, before the first event.
    pub fn refused(&mut self, all: Vec<Refused>) {
        self.past.refused(all);
    }

    /// The next event; they come in the order of their times. Gaps are events too.
    pub fn event(&mut self, event: &HistoryEvent) {
        self.board.preview.events += 1;
        match event.kind {
            EventKind::Unwatched => self.unwatched(event.at),
            EventKind::WatchedAgain => self.board.watched_again(event.at),
            _ => {}
        }
        match self.rule.condition.kind.about() {
            About::Lock => {
                let p95 = self.lives.event(self.rule, event, &self.past, &mut self.board);
                if p95 {
                    self.past.apply(event);
                }
            }
            About::Prefix => {
                self.look_until(event.at);
                self.past.apply(event);
            }
            About::Backend => {}
        }
    }

    fn unwatched(&mut self, at: i64) {
        self.lives.forget(self.rule, &self.past, at, &mut self.board);
        if self.rule.condition.kind.about() == About::Prefix {
            self.look_until(at);
        }
        self.board.gap_since = Some(at);
    }

    /// Windows, as often as it is worth it.
    fn look_until(&mut self, to: i64) {
        let window = self.rule.condition.value("window").unwrap_or(300_000);
        let pace = (window / LOOKS_PER_WINDOW).max(LOOK_MS_MIN);
        while self.next_look + pace <= to {
            self.next_look += pace;
            let now = self.next_look;
            let is_blind = self.board.gap_since.is_some_and(|since| since <= now);
            if is_blind {
                continue;
            }
            let found = judge_windows(0, self.rule, &self.past, now);
            for (measure, at) in found.iter().map(|one| (one.measure, now)) {
                self.board.measured(at, measure);
            }
            if found.is_empty() {
                let quiet = super::windows::highest(self.rule, &self.past, now);
                self.board.measured(now, quiet);
            }
            self.settle(found, now);
        }
    }

    /// Steps every subject: what was found holds, the others are clear.
    fn settle(&mut self, found: Vec<Found>, now: i64) {
        let mut marks = HashSet::with_capacity(found.len());
        for one in found {
            let (phase, place) = self.phases.remove(&one.subject).unwrap_or((None, 0));
            let (phase, change) = step(phase, Sign::Holds, self.rule.timing, now);
            let place = match change {
                Some(Change::Fired) => self.board.fired(now, &one),
                _ => place,
            };
            self.phases.insert(one.subject.clone(), (phase, place));
            marks.insert(one.subject);
        }
        let timing = self.rule.timing;
        let board = &mut self.board;
        self.phases.retain(|subject, (phase, place)| {
            if marks.contains(subject) {
                return true;
            }
            let (next, change) = step(*phase, Sign::Clear, timing, now);
            *phase = next;
            if change == Some(Change::Resolved) {
                board.resolved(*place, now);
            }
            next.is_some()
        });
    }

    /// What was recorded in the time, oldest first.
    pub fn happened(&mut self, all: &[Happened]) {
        let kind = self.rule.condition.kind;
        let window = self.rule.condition.value("window").unwrap_or(300_000);
        let relevant: Vec<&Happened> = all.iter().filter(|one| counts(kind, one.what)).collect();
        self.board.preview.events += relevant.len() as u64;
        let mut moments: Vec<i64> = relevant
            .iter()
            .flat_map(|one| [one.at, one.at + window])
            .collect();
        moments.sort_unstable();
        moments.dedup();
        let (from, to) = (self.board.preview.from, self.board.preview.to);
        for now in moments.into_iter().filter(|at| (from..to).contains(at)) {
            let first = all.partition_point(|one| one.at <= now - window);
            let last = all.partition_point(|one| one.at <= now);
            let found = judge_counts(0, self.rule, &all[first..last], now);
            let count = all[first..last]
                .iter()
                .filter(|one| counts(kind, one.what))
                .count();
            self.board.measured(now, i64::try_from(count).unwrap_or(i64::MAX));
            self.settle(found, now);
        }
    }

    pub fn finish(mut self) -> Preview {
        let to = self.board.preview.to;
        if self.rule.condition.kind.about() == About::Prefix
            && self.rule.condition.kind.info().past == Known::Events
        {
            self.look_until(to);
        }
        self.lives.end(self.rule, &self.past, to, &mut self.board);
        let mut preview = self.board.preview;
        if let Some(since) = self.board.gap_since {
            preview.gaps.push((since, to));
        }
        let locks = self.past.locks.len().max(self.lives.seen());
        preview.locks = locks as u64;
        preview.acquisitions = self.past.holdings.max(self.lives.acquisitions);
        preview.without_ttl = self.past.without_ttl.max(self.lives.without_ttl);
        preview.firings.sort_by_key(|firing| firing.at);
        preview
    }
}

impl Board {
    pub(super) fn fired(&mut self, at: i64, found: &Found) -> usize {
        let place = self.preview.firings.len();
        self.preview.count += 1;
        if place < FIRINGS_MAX {
            self.preview.firings.push(Firing {
                at,
                until: None,
                subject: found.subject.clone(),
                owner: found.owner.clone(),
                measure: found.measure,
                why: found.why.clone(),
            });
        }
        place
    }

    pub(super) fn resolved(&mut self, place: usize, at: i64) {
        if let Some(firing) = self.preview.firings.get_mut(place) {
            firing.until = Some(at);
        }
    }

    /// Keeps the worst of each point.
    pub(super) fn measured(&mut self, at: i64, measure: i64) {
        let point = self.point_of(at);
        let is_falling = self.is_falling;
        if let Some(point) = point.and_then(|index| self.preview.series.get_mut(index)) {
            let worst = point.measure.map_or(measure, |known| {
                if is_falling {
                    known.min(measure)
                } else {
                    known.max(measure)
                }
            });
            point.measure = Some(worst);
        }
    }

    fn point_of(&self, at: i64) -> Option<usize> {
        let (from, to) = (self.preview.from, self.preview.to);
        if at < from || at >= to {
            return None;
        }
        usize::try_from((at - from) * POINTS / (to - from)).ok()
    }

    /// Ends of the points between two moments.
    pub(super) fn ends_between(&self, from: i64, to: i64) -> impl Iterator<Item = i64> {
        let (start, end) = (self.preview.from, self.preview.to);
        let step = ((end - start) / POINTS).max(1);
        let first = (from.max(start) - start) / step + 1;
        let last = (to.min(end) - start) / step;
        (first..=last).map(move |index| start + index * step - 1)
    }

    fn watched_again(&mut self, at: i64) {
        if let Some(since) = self.gap_since.take() {
            self.preview.gaps.push((since, at));
        }
    }
}
