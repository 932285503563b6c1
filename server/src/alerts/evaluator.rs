//! The evaluator: evaluates all rules once a second, and writes changes together with their notifications.

mod change_detector;
pub(super) mod counted_events;
mod follow;
mod scan;
mod waits;
mod windows;
mod write;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use domain::alerts::limits::{EVALUATE_EVERY_MS, UNWATCHED_AFTER_MS, WINDOW_MS_MAX};
use domain::alerts::{
    Active, Baseline, ConditionKind, ConditionResult, Rule, RuleId, Subject, SubjectKind, evaluate_backends,
    evaluate_counts, evaluate_windows, notices, round, step,
};
use tokio_util::sync::CancellationToken;

use self::change_detector::{ChangeDetector, Due};
use self::counted_events::CountedEvents;
use self::scan::{ScanSnapshot, evaluate_rules};
use self::windows::WindowLearner;
use super::{Alerts, Notices, path, store};
use crate::janitor::Janitor;
use crate::leader_election::LeaderElection;
use lease::LeaseService;
use runtime::clock::ClockReading;
use runtime::telemetry::instruments;
use runtime::telemetry::instruments::Firing;

/// Rows of history per read, and reads per round.
const ROWS: i64 = 5_000;
const STEPS: usize = 10;
/// How far back hold times are learned, in milliseconds.
const LEARN_MS: i64 = 7 * 24 * 3_600_000;
const PRUNE_EVERY: Duration = Duration::from_secs(3_600);

pub(super) struct Evaluator {
    alerts: Arc<Alerts>,
    notices: Arc<dyn Notices>,
    leader: LeaderElection,
    /// Position in the history; `None`: not started.
    position: Option<i64>,
    has_caught_up: bool,
    /// More history exists than one round reads.
    is_behind: bool,
    counted_events: CountedEvents,
    windows: WindowLearner,
    janitor: Janitor,
    changes: ChangeDetector,
    /// Receivers that this process had added at the last round.
    receivers_added: u64,
    /// When the evaluation time was last stored.
    noted_at: i64,
    is_first: bool,
    is_failing: bool,
}

impl Evaluator {
    pub(super) fn new(alerts: Arc<Alerts>, leases: &Arc<LeaseService>, notices: Arc<dyn Notices>) -> Self {
        let leader = LeaderElection::new(&alerts.db, "leasehold/alerts", leases, &alerts.clock);
        // Baselines of an earlier evaluator are learned again from the start.
        *alerts.inventory.long_held().baseline_mut() = Baseline::default();
        Self {
            alerts,
            notices,
            leader,
            position: None,
            has_caught_up: false,
            is_behind: false,
            counted_events: CountedEvents::default(),
            windows: WindowLearner::default(),
            janitor: Janitor::new("alerts", PRUNE_EVERY),
            changes: ChangeDetector::default(),
            receivers_added: 0,
            noted_at: 0,
            is_first: true,
            is_failing: false,
        }
    }

    pub(super) async fn run(mut self, stop: CancellationToken) {
        while tokio::time::timeout(self.until_next(), stop.cancelled())
            .await
            .is_err()
        {
            match Box::pin(self.round()).await {
                Ok(has_evaluated) => {
                    self.is_failing = false;
                    if has_evaluated {
                        self.alerts.evaluation.evaluated();
                    }
                }
                Err(error) => {
                    if !self.is_failing {
                        tracing::warn!("alerts cannot be evaluated: {error}");
                    }
                    self.is_failing = true;
                    // The stored state is read again first.
                    self.is_first = true;
                }
            }
        }
        self.leader.resign().await;
    }

    /// Time to the next whole second, which previews use too.
    fn until_next(&self) -> Duration {
        let past_ms = self.alerts.now().rem_euclid(EVALUATE_EVERY_MS);
        Duration::from_millis((EVALUATE_EVERY_MS - past_ms).unsigned_abs())
    }

    /// Returns whether this replica is the leader and evaluated every rule.
    async fn round(&mut self) -> Result<bool, sqlx::Error> {
        let Some(token) = self.leader.token().await else {
            self.is_first = true;
            instruments().firing(Firing::new());
            self.follow().await?;
            return Ok(false);
        };
        let now = self.alerts.clock.now();
        let at = now.wall.timestamp_millis();
        if self.is_first {
            self.changes = ChangeDetector::default();
        }
        self.check_receivers();
        let positions = self.alerts.ledger.positions(at).await?;
        let state = self
            .alerts
            .load_state(positions.and_then(|positions| positions.revision))
            .await?;
        let due = self.changes.due(positions, state.revision, at);
        self.name_long_held(&state).await;
        let (rules, silences, receivers_added) = (state.rules(), state.silences(at), state.receivers_added);
        let mut before: Vec<Active> = state.open.iter().map(|open| open.alert.clone()).collect();
        // As stored, before the time without evaluation is subtracted: the shifted phase is a change.
        let stored: HashMap<i64, Active> = before.iter().map(|alert| (alert.id, alert.clone())).collect();
        drop(state);
        if self.is_first {
            self.skip_gap(&rules, &mut before, at).await?;
        }
        self.learn_windows(&rules, at).await?;
        self.read(due, &rules, at).await?;
        self.changes.read(positions);
        self.alerts.previews.forget_unused(at);
        self.janitor
            .run(now.tick, store::prune(&self.alerts.db, at))
            .await;
        let mut snapshot = self.scan(&rules, &before, now).await;
        let is_unknown = |rule: &Rule, alert: &Active| {
            let is_of_backend = rule.condition.kind == ConditionKind::BackendUnreachable;
            (!is_of_backend && snapshot.blind.contains(alert.subject.backend()))
                || snapshot
                    .unknown
                    .contains(&(alert.rule.clone(), alert.subject.clone()))
        };
        let mut outcome = round(&rules, before, snapshot.found.clone(), &is_unknown, at);
        outcome.left_out.merge(std::mem::take(&mut snapshot.left_out));
        instruments().firing(firing(&rules, &outcome.active));
        let resolved: Vec<Active> = outcome.over.iter().map(|(alert, _)| alert.clone()).collect();
        let history = notices(
            &rules,
            &outcome.active,
            &resolved,
            &outcome.left_out,
            &silences,
            &path,
            at,
        );
        self.write(
            token,
            outcome,
            history,
            &stored,
            (&rules, &silences, receivers_added),
            at,
        )
        .await
    }

    /// With SQLite the state is read again after an own write only, and receivers are written by another module.
    fn check_receivers(&mut self) {
        let added = self.notices.receivers_added();
        if std::mem::replace(&mut self.receivers_added, added) != added {
            self.alerts.cache.mark_written();
        }
    }

    /// After a time without evaluation: that time does not count.
    async fn skip_gap(&mut self, rules: &[Rule], before: &mut [Active], now: i64) -> Result<(), sqlx::Error> {
        let last = store::last_evaluated(&self.alerts.db).await?;
        if let Some(last) = last.filter(|last| now - last > UNWATCHED_AFTER_MS) {
            for alert in before {
                let timing = rules.iter().find(|rule| rule.id == alert.rule);
                let timing = timing.map(|rule| rule.timing).unwrap_or_default();
                if let (Some(phase), _) = step(Some(alert.phase), ConditionResult::Unknown, timing, last) {
                    alert.phase = phase;
                }
            }
        }
        self.is_first = false;
        self.noted_at = 0;
        Ok(())
    }

    /// Reads the due parts of the store.
    async fn read(&mut self, due: Due, rules: &[Rule], at: i64) -> Result<(), sqlx::Error> {
        if due.events || self.is_behind {
            self.learn(at).await?;
        }
        let ledger = self.alerts.ledger.clone();
        if due.records {
            self.counted_events.read_records(&*ledger, rules, at).await?;
        }
        if due.signals
            && let Some(read) = self.counted_events.read_signals(&*ledger, rules, at).await?
        {
            let mut baseline = self.alerts.inventory.long_held().baseline_mut();
            baseline.refused(read.since, read.refused);
            baseline.forget_refused(at - WINDOW_MS_MAX);
        }
        Ok(())
    }

    /// Reads new history.
    async fn learn(&mut self, now: i64) -> Result<(), sqlx::Error> {
        let mut position = match self.position {
            Some(position) => position,
            None => self.alerts.ledger.position_before(now - LEARN_MS).await?,
        };
        for _ in 0..STEPS {
            let rows = self.alerts.ledger.events(position, ROWS).await?;
            let is_all = (rows.len() as i64) < ROWS;
            self.is_behind = !is_all;
            position = self.apply(rows, position).await;
            // At once: after a failed read of the next rows these are not applied again.
            self.position = Some(position);
            if is_all {
                self.has_caught_up = true;
                break;
            }
        }
        Ok(())
    }

    async fn scan(&self, rules: &[Rule], before: &[Active], now: ClockReading) -> ScanSnapshot {
        let at = now.wall.timestamp_millis();
        let mut snapshot = self.scan_locks(rules, before, now).await;
        let views = self.alerts.inventory.backends(now);
        self.scan_waits(rules, before, now, &mut snapshot);
        let recorded = self.counted_events.in_order();
        let mut baseline = self.alerts.inventory.long_held().baseline_mut();
        for (index, rule) in rules.iter().enumerate().filter(|(_, rule)| rule.is_enabled) {
            match rule.condition.kind.about() {
                SubjectKind::Prefix => {
                    let found = evaluate_windows(index, rule, &mut baseline, at);
                    if found.is_none() || !self.has_caught_up {
                        let of_rule = before.iter().filter(|alert| alert.rule == rule.id);
                        snapshot
                            .unknown
                            .extend(of_rule.map(|alert| (alert.rule.clone(), alert.subject.clone())));
                    }
                    let found = found.unwrap_or_default().into_iter();
                    snapshot
                        .found
                        .extend(found.filter(|alert| !snapshot.blind.contains(alert.subject.backend())));
                }
                SubjectKind::Backend => {
                    for (backend, sign, found) in evaluate_backends(index, rule, &views) {
                        if sign == ConditionResult::Unknown {
                            snapshot
                                .unknown
                                .insert((rule.id.clone(), Subject::Backend(backend)));
                        }
                        snapshot.found.extend(found);
                    }
                    snapshot
                        .found
                        .extend(evaluate_counts(index, rule, recorded.iter().copied(), at));
                }
                SubjectKind::Lock => {
                    snapshot
                        .found
                        .extend(evaluate_counts(index, rule, recorded.iter().copied(), at));
                }
            }
        }
        // Windows and records still contain events of a backend that is no longer configured, but its alerts end.
        let configured: HashSet<String> = self.alerts.backends.names().into_iter().collect();
        snapshot
            .found
            .retain(|found| configured.contains(found.subject.backend().as_str()));
        snapshot
    }

    /// One pass over all locks, on a blocking thread.
    async fn scan_locks(&self, rules: &[Rule], before: &[Active], now: ClockReading) -> ScanSnapshot {
        let watched: Vec<(usize, Rule)> = rules
            .iter()
            .cloned()
            .enumerate()
            .filter(|(_, rule)| rule.is_enabled && rule.condition.kind.about() == SubjectKind::Lock)
            .collect();
        let known: HashMap<(RuleId, Subject), String> = before
            .iter()
            .map(|alert| ((alert.rule.clone(), alert.subject.clone()), alert.holding.clone()))
            .collect();
        let inventory = self.alerts.inventory.clone();
        let long_held = inventory.long_held().clone();
        let pass = tokio::task::spawn_blocking(move || {
            let mut snapshot = ScanSnapshot::default();
            let blind = inventory.for_each_snapshot(now, EVALUATE_EVERY_MS, &mut |lock_snapshot| {
                evaluate_rules(lock_snapshot, &watched, &known, &long_held, &mut snapshot);
            });
            snapshot.blind = blind.into_iter().collect();
            snapshot
        });
        // After a panic, which was logged, the state of every lock is unknown.
        pass.await.unwrap_or_else(|_| ScanSnapshot {
            blind: self
                .alerts
                .inventory
                .backends(now)
                .into_iter()
                .map(|view| view.name)
                .collect(),
            ..ScanSnapshot::default()
        })
    }
}

/// Counts by rule and severity, including 0 for every enabled rule, so that a metric rises from 0.
fn firing(rules: &[Rule], active: &[Active]) -> Firing {
    let rule_labels = |rule: &Rule| (rule.id.to_string(), rule.severity.as_str());
    let rules = rules.iter().filter(|rule| rule.is_enabled);
    rules
        .map(|rule| {
            let fires = |alert: &&Active| alert.rule == rule.id && alert.is_firing();
            (rule_labels(rule), active.iter().filter(fires).count() as u64)
        })
        .collect()
}
