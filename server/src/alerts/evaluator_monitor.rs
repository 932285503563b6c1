//! Monitors the alert evaluator: when any replica last evaluated the rules, and whether that is overdue.
//!
//! A separate task, so that it detects an evaluator that hangs or fails and a leader lease that no replica gets.
//! Ages are counted by the local monotonic clock from the moment a newer evaluation was seen, so that clocks of
//! other replicas do not matter.

use std::time::Duration;

use domain::alerts::OVERDUE;
use domain::alerts::limits::EVALUATION_AGE_MS_MAX;
use domain::tick::Tick;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::store;
use runtime::clock::Clock;
use runtime::db::Db;

/// Interval of the check, and of the store query with several replicas.
const CHECK_EVERY: Duration = Duration::from_secs(5);
/// Milliseconds after which a late check means that this process was paused, and its evaluator with it.
const CHECK_LATE_MS: i64 = 15_000;
/// Interval in milliseconds at which the log repeats an overdue evaluation.
const LOG_EVERY_MS: i64 = 10 * 60_000;

/// One per process, cheap to query.
#[derive(Debug)]
pub struct EvaluatorMonitor {
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy)]
struct State {
    /// When the last evaluation was seen; before the first, the start of the process.
    last: Tick,
    /// As stored, by the clock of the evaluating replica.
    written_at: Option<i64>,
    checked: Tick,
    is_overdue: bool,
    logged: Option<Tick>,
}

/// Result of a check.
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

    /// `written_at`: the stored time; `None` if not queried or absent.
    fn check(&mut self, now: Tick, written_at: Option<i64>) -> Report {
        if now.since(self.checked) > CHECK_LATE_MS {
            self.last = now;
        }
        self.checked = now;
        // The first value may be old and does not count as an evaluation.
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

impl EvaluatorMonitor {
    pub fn new(clock: Clock) -> Self {
        let state = Mutex::new(State::new(clock.tick()));
        Self { clock, state }
    }

    /// Records that this process evaluated every rule.
    pub(super) fn evaluated(&self) {
        let now = self.clock.tick();
        self.with(|state| state.evaluated(now));
    }

    /// Milliseconds since the last known evaluation by any replica, or since the start.
    pub fn age_ms(&self) -> i64 {
        let now = self.clock.tick();
        self.with(|state| now.since(state.last)).max(0)
    }

    /// Whether no replica has evaluated for longer than [`EVALUATION_AGE_MS_MAX`].
    pub fn is_overdue(&self) -> bool {
        self.with(|state| state.is_overdue)
    }

    /// Checks until `stop`.
    pub(super) async fn monitor(&self, db: &Db, stop: CancellationToken) {
        while tokio::time::timeout(CHECK_EVERY, stop.cancelled()).await.is_err() {
            // With SQLite only the local evaluator exists.
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
                    "{OVERDUE} Check the logs of all servers for errors of the task `alerts`, and which server holds leasehold/alerts"
                ),
                Report::Recovered => tracing::info!("alert rules are evaluated again"),
            }
        }
    }

    fn with<T>(&self, read: impl FnOnce(&mut State) -> T) -> T {
        read(&mut self.state.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Tick {
        Tick(seconds * 1_000)
    }

    /// Checks every five seconds with the given stored time; returns the seconds at which it was overdue.
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
        // Stored every 20 s, by a clock that goes backwards.
        assert_eq!(overdue(300, |second| Some(-(second / 20))), [0; 0]);
    }

    #[test]
    fn overdue_is_logged_rarely_and_ends_with_an_evaluation() {
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
    fn time_of_a_paused_process_does_not_count() {
        let mut state = State::new(at(0));
        assert_eq!(state.check(at(5), None), Report::Nothing);
        assert_eq!(state.check(at(3_600), None), Report::Nothing);
        assert!(!state.is_overdue);
    }
}
