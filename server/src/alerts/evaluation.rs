//! Monitors the alert evaluator: when any server last evaluated the rules, and whether that is too long ago.
//!
//! Deliberately apart from the evaluator, in a task of its own: it reports an evaluator that hangs, one that fails, and a
//! leader lease that none of the servers gets. Ages are counted by our own monotonic clock from the moment at which a newer
//! evaluation was seen, so that clocks of other servers do not matter.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::alerts::OVERDUE;
use domain::alerts::limits::EVALUATION_AGE_MS_MAX;
use domain::observation::Tick;
use tokio_util::sync::CancellationToken;

use super::store;
use crate::clock::Clock;
use crate::db::Db;

/// How often the age is checked, and with several servers the store is asked.
const CHECK_EVERY: Duration = Duration::from_secs(5);
/// A check that is this late, in milliseconds: our process stood still, and its evaluator with it.
const CHECK_LATE_MS: i64 = 15_000;
/// While it lasts, the log repeats it this often, in milliseconds.
const LOG_EVERY_MS: i64 = 10 * 60_000;

/// Cheap to ask. One for each process.
#[derive(Debug)]
pub struct Evaluation {
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy)]
struct State {
    /// When the last evaluation was seen; from the start of the process until there was one.
    last: Tick,
    /// As the store has it, by the clock of the server that evaluated.
    written_at: Option<i64>,
    checked: Tick,
    is_overdue: bool,
    logged: Option<Tick>,
}

/// What a check leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Report {
    Nothing,
    Overdue { age_ms: i64 },
    Recovered,
}

impl State {
    const fn new(now: Tick) -> Self {
        Self {
            last: now,
            written_at: None,
            checked: now,
            is_overdue: false,
            logged: None,
        }
    }

    fn evaluated(&mut self, now: Tick) {
        self.last = self.last.max(now);
    }

    /// `written_at`: what the store says now; none where it was not asked or does not say.
    fn check(&mut self, now: Tick, written_at: Option<i64>) -> Report {
        if now.since(self.checked) > CHECK_LATE_MS {
            self.last = now;
        }
        self.checked = now;
        // The first reading is no news: it may be as old as the store.
        if written_at.is_some() && self.written_at.is_some() && written_at != self.written_at {
            self.evaluated(now);
        }
        self.written_at = written_at.or(self.written_at);
        let age_ms = now.since(self.last);
        let was_overdue = std::mem::replace(&mut self.is_overdue, age_ms > EVALUATION_AGE_MS_MAX);
        if !self.is_overdue {
            self.logged = None;
            return if was_overdue {
                Report::Recovered
            } else {
                Report::Nothing
            };
        }
        if self.logged.is_some_and(|at| now.since(at) < LOG_EVERY_MS) {
            return Report::Nothing;
        }
        self.logged = Some(now);
        Report::Overdue { age_ms }
    }
}

impl Evaluation {
    pub fn new(clock: Clock) -> Self {
        let state = Mutex::new(State::new(clock.tick()));
        Self { clock, state }
    }

    /// This process has evaluated every rule.
    pub(super) fn evaluated(&self) {
        let now = self.clock.tick();
        self.with(|state| state.evaluated(now));
    }

    /// Milliseconds since the last evaluation by any server, as far as this one has seen; since its start, before the first.
    pub fn age_ms(&self) -> i64 {
        let now = self.clock.tick();
        self.with(|state| now.since(state.last)).max(0)
    }

    /// Nobody has evaluated for longer than [`EVALUATION_AGE_MS_MAX`].
    pub fn is_overdue(&self) -> bool {
        self.with(|state| state.is_overdue)
    }

    /// Checks until `stop`.
    pub(super) async fn monitor(&self, db: &Db, stop: CancellationToken) {
        while tokio::time::timeout(CHECK_EVERY, stop.cancelled()).await.is_err() {
            // A file of SQLite belongs to one server: its own evaluator says all there is.
            let written_at = match db {
                Db::Sqlite(_) => None,
                Db::Postgres(_) => tokio::time::timeout(CHECK_EVERY, store::last_evaluated(db))
                    .await
                    .ok()
                    .and_then(Result::ok)
                    .flatten(),
            };
            let now = self.clock.tick();
            match self.with(|state| state.check(now, written_at)) {
                Report::Nothing => {}
                Report::Overdue { age_ms } => tracing::error!(
                    alerts.evaluation.age_s = age_ms / 1_000,
                    "{OVERDUE} Look for errors of the task `alerts` in the logs of all servers, and at who holds leasehold/alerts"
                ),
                Report::Recovered => tracing::info!("alert rules are evaluated again"),
            }
        }
    }

    fn with<T>(&self, read: impl FnOnce(&mut State) -> T) -> T {
        read(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Tick {
        Tick(seconds * 1_000)
    }

    /// Checks every five seconds, with what the store says then; the seconds at which it was overdue.
    fn overdue(until: i64, written_at: impl Fn(i64) -> Option<i64>) -> Vec<i64> {
        let mut state = State::new(at(0));
        let checks = (1..=until / 5).map(|check| check * 5);
        checks
            .filter(|second| {
                state.check(at(*second), written_at(*second));
                state.is_overdue
            })
            .collect()
    }

    #[test]
    fn overdue_begins_after_sixty_seconds_without_evaluation() {
        assert_eq!(overdue(75, |_| None), [65, 70, 75]);
        // An old evaluation in the store is not a new one.
        assert_eq!(overdue(75, |_| Some(7)), [65, 70, 75]);
    }

    #[test]
    fn evaluation_by_another_server_counts_whatever_its_clock_says() {
        // Written every 20 s, by a clock that goes backwards.
        assert_eq!(overdue(300, |second| Some(-(second / 20))), [0; 0]);
    }

    #[test]
    fn overdue_is_logged_once_then_seldom_and_ends_with_an_evaluation() {
        let mut state = State::new(at(0));
        let reports = (1..=144).map(|check| state.check(at(check * 5), None));
        let reports = reports.filter(|report| *report != Report::Nothing).count();
        assert_eq!(reports, 2, "after 65 s and ten minutes later");
        state.evaluated(at(721));
        assert_eq!(state.check(at(725), None), Report::Recovered);
        assert!(!state.is_overdue);
        assert_eq!(state.check(at(730), None), Report::Nothing);
    }

    #[test]
    fn time_in_which_the_process_stood_still_does_not_count() {
        let mut state = State::new(at(0));
        assert_eq!(state.check(at(5), None), Report::Nothing);
        assert_eq!(state.check(at(3_600), None), Report::Nothing);
        assert!(!state.is_overdue);
    }
}
