//! What a rule would have done: history played through the same conditions and the same machine.
//!
//! Between two events of a lock only time passes, and every condition on one lock becomes true at most once by time alone:
//! the moment is found by halving, not by trying every second.

mod lives;

use std::collections::{HashMap, HashSet};

use self::lives::Lives;
use super::count_window::CountWindow;
use super::kind::{About, Kind, Past as Known};
use super::machine::{Change, Phase, Sign, Timing, step};
use super::past::{Past, Refused};
use super::places::Happened;
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
    /// Prefixes, and subjects of what was recorded.
    tracked: HashMap<Subject, Tracked>,
    next_look: i64,
}

/// One subject whose alert is pending or fires, since the last look at it.
struct Tracked {
    phase: Phase,
    sign: Sign,
    /// What held last.
    found: Found,
    /// Its firing on the board.
    place: usize,
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
            tracked: HashMap::new(),
            next_look: from,
        }
    }

    /// Who was refused in the time, before the first event.
    pub fn refused(&mut self, all: Vec<Refused>) {
        self.past.refused(i64::MIN, all);
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
        self.run_due(now);
        let timing = self.rule.timing;
        let mut holding = HashSet::with_capacity(found.len());
        for one in found {
            let before = self.tracked.remove(&one.subject);
            let place = before.as_ref().map_or(0, |before| before.place);
            let (phase, change) = step(before.map(|before| before.phase), Sign::Holds, timing, now);
            let place = match change {
                Some(Change::Fired) => self.board.fired(now, &one),
                _ => place,
            };
            holding.insert(one.subject.clone());
            if let Some(phase) = phase {
                let sign = Sign::Holds;
                let tracked = Tracked {
                    phase,
                    sign,
                    found: one,
                    place,
                };
                self.tracked.insert(tracked.found.subject.clone(), tracked);
            }
        }
        let board = &mut self.board;
        self.tracked.retain(|subject, tracked| {
            holding.contains(subject) || {
                tracked.sign = Sign::Clear;
                tracked.step(timing, now, board)
            }
        });
    }

    /// Between two looks only time passes: what has become due meanwhile fired or resolved then.
    fn run_due(&mut self, now: i64) {
        let timing = self.rule.timing;
        let board = &mut self.board;
        self.tracked.retain(|_, tracked| {
            tracked
                .due(timing)
                .filter(|due| *due < now)
                .is_none_or(|due| tracked.step(timing, due, board))
        });
    }

    /// What was recorded in the time, oldest first.
    pub fn happened(&mut self, all: &[Happened]) {
        let mut window = CountWindow::new(0, self.rule);
        let relevant: Vec<&Happened> = all.iter().filter(|one| window.takes(one)).collect();
        let times = relevant.iter().map(|one| u64::from(one.times));
        self.board.preview.events += times.sum::<u64>();
        let ends = relevant
            .iter()
            .flat_map(|one| [one.at, one.at + window.window_ms()]);
        let mut moments: Vec<i64> = ends.collect();
        moments.sort_unstable();
        moments.dedup();
        let (from, to) = (self.board.preview.from, self.board.preview.to);
        let mut next = relevant.into_iter().peekable();
        for now in moments.into_iter().filter(|at| (from..to).contains(at)) {
            while let Some(one) = next.next_if(|one| one.at <= now) {
                window.add(one);
            }
            window.expire(now);
            self.board.measured(now, window.total());
            self.settle(window.found(), now);
        }
    }

    pub fn finish(mut self) -> Preview {
        let to = self.board.preview.to;
        if self.rule.condition.kind.about() == About::Prefix
            && self.rule.condition.kind.info().past == Known::Events
        {
            self.look_until(to);
        }
        self.run_due(to);
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

impl Tracked {
    /// When it fires or resolves if nothing changes.
    const fn due(&self, timing: Timing) -> Option<i64> {
        match (self.phase, self.sign) {
            (Phase::Pending { since, .. }, Sign::Holds) => Some(since + timing.for_ms),
            (
                Phase::Firing {
                    clear_since: Some(since),
                    ..
                },
                Sign::Clear,
            ) => Some(since + timing.keep_ms),
            _ => None,
        }
    }

    /// Whether it goes on.
    fn step(&mut self, timing: Timing, now: i64, board: &mut Board) -> bool {
        let (phase, change) = step(Some(self.phase), self.sign, timing, now);
        match change {
            Some(Change::Fired) => self.place = board.fired(now, &self.found),
            Some(Change::Resolved) => board.resolved(self.place, now),
            _ => {}
        }
        if let Some(phase) = phase {
            self.phase = phase;
        }
        phase.is_some()
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
