//! Conditions that count what was recorded elsewhere than in events: rejections, forced unlocks, failed calls.

use std::collections::{HashMap, HashSet};

use super::board::{Board, FiringNumber};
use super::{Preview, next_evaluation};
use crate::alerts::count_window::CountWindow;
use crate::alerts::machine::{Change, Phase, Sign, Timing, step};
use crate::alerts::places::Happened;
use crate::alerts::round::{Found, Subject};
use crate::alerts::rule::Rule;

/// One subject whose alert is pending or fires, since it was last evaluated.
struct Tracked {
    phase: Phase,
    sign: Sign,
    /// What held last.
    found: Found,
    firing: Option<FiringNumber>,
}

pub(super) fn preview(rule: &Rule, (from, to): (i64, i64), all: &[Happened]) -> Preview {
    let mut window = CountWindow::new(0, rule);
    let relevant: Vec<&Happened> = all.iter().filter(|one| window.takes(one)).collect();
    let mut board = Board::new(rule, from, to);
    board.read(relevant.iter().map(|one| u64::from(one.times)).sum());
    let ends = relevant
        .iter()
        .flat_map(|one| [one.at, one.at + window.window_ms()]);
    let mut moments: Vec<i64> = ends.map(next_evaluation).collect();
    moments.sort_unstable();
    moments.dedup();
    let mut tracked = HashMap::new();
    let mut next = relevant.into_iter().peekable();
    for now in moments.into_iter().filter(|at| (from..to).contains(at)) {
        while let Some(one) = next.next_if(|one| one.at <= now) {
            window.add(one);
        }
        window.expire(now);
        board.evaluated();
        board.measured(now, window.total());
        settle(&mut tracked, window.found(), rule.timing, now, &mut board);
    }
    run_due(&mut tracked, rule.timing, to, &mut board);
    board.finish(0)
}

/// Steps every subject: what was found holds, the others are clear.
fn settle(
    tracked: &mut HashMap<Subject, Tracked>,
    found: Vec<Found>,
    timing: Timing,
    now: i64,
    board: &mut Board,
) {
    run_due(tracked, timing, now, board);
    let mut holding = HashSet::with_capacity(found.len());
    for one in found {
        let before = tracked.remove(&one.subject);
        holding.insert(one.subject.clone());
        let mut firing = before.as_ref().and_then(|before| before.firing);
        let (phase, change) = step(before.map(|before| before.phase), Sign::Holds, timing, now);
        if change == Some(Change::Fired) {
            firing = Some(board.fired(now, || one.clone()));
        }
        if let Some(phase) = phase {
            let subject = one.subject.clone();
            let now_tracked = Tracked {
                phase,
                sign: Sign::Holds,
                found: one,
                firing,
            };
            tracked.insert(subject, now_tracked);
        }
    }
    tracked.retain(|subject, tracked| {
        holding.contains(subject) || {
            tracked.sign = Sign::Clear;
            tracked.step(timing, now, board)
        }
    });
}

/// Between two evaluations that change something only time passes: what has become due fired or resolved then.
fn run_due(tracked: &mut HashMap<Subject, Tracked>, timing: Timing, now: i64, board: &mut Board) {
    tracked.retain(|_, tracked| {
        let due = tracked.phase.due(tracked.sign, timing).map(next_evaluation);
        due.filter(|due| *due < now)
            .is_none_or(|due| tracked.step(timing, due, board))
    });
}

impl Tracked {
    /// Whether it goes on.
    fn step(&mut self, timing: Timing, now: i64, board: &mut Board) -> bool {
        let (phase, change) = step(Some(self.phase), self.sign, timing, now);
        match (change, self.firing) {
            (Some(Change::Fired), _) => self.firing = Some(board.fired(now, || self.found.clone())),
            (Some(Change::Resolved), Some(firing)) => board.resolved(firing, now),
            _ => {}
        }
        if let Some(phase) = phase {
            self.phase = phase;
        }
        phase.is_some()
    }
}
