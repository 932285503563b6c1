//! Work of every replica, leader or not: reads rules and history, and positions long-held locks.

use domain::alerts::{Active, Rule, Subject};
use domain::history::HistoryEvent;
use domain::lock_detail::EventKind;
use domain::names::LockId;

use super::super::alert_cache::AlertState;
use super::Evaluator;
use inventory::Alerted;

impl Evaluator {
    /// A round of a replica that is not the leader.
    pub(super) async fn follow(&mut self) -> Result<(), sqlx::Error> {
        let at = self.alerts.now();
        let positions = self.alerts.ledger.positions(at).await?;
        let state = self
            .alerts
            .load_state(positions.and_then(|positions| positions.revision))
            .await?;
        self.name_long_held(&state).await;
        let due = self.changes.due(positions, state.revision, at);
        self.learn_windows(&state.rules(), at).await?;
        self.alerts.previews.forget_unused(at);
        if due.events || self.is_behind {
            self.learn(at).await?;
        }
        self.changes.read(positions);
        Ok(())
    }

    /// The state `long_held` follows the enabled rules and their open alerts.
    pub(super) async fn name_long_held(&self, state: &AlertState) {
        let mut rules = state.rules();
        rules.retain(Rule::is_long_held);
        let open = state.open.iter().map(|open| &open.alert);
        let open = open.filter(|alert| rules.iter().any(|rule| rule.id == alert.rule));
        let alerted: Alerted = open.filter_map(of_lock).collect();
        let inventory = self.alerts.inventory.clone();
        // May evaluate a million locks.
        let reevaluation = tokio::task::spawn_blocking(move || inventory.follow_long_held(rules, alerted));
        // After a panic, which was logged, the states are unchanged.
        let _ = reevaluation.await;
    }

    /// Returns the position of the last row.
    pub(super) async fn apply(&self, rows: Vec<(i64, HistoryEvent)>, mut position: i64) -> i64 {
        let inventory = self.alerts.inventory.clone();
        let mut ended = Vec::new();
        let is_forgotten = {
            let mut baseline = inventory.long_held().baseline_mut();
            let forgotten = baseline.forgotten();
            for (at, event) in rows {
                position = position.max(at);
                baseline.apply(&event);
                ended.extend(lock_of_end(event));
            }
            baseline.forgotten() != forgotten
        };
        if is_forgotten || !ended.is_empty() {
            let reevaluation = tokio::task::spawn_blocking(move || match is_forgotten {
                true => inventory.reevaluate_all(),
                false => inventory.reevaluate(&ended),
            });
            let _ = reevaluation.await;
        }
        position
    }
}

fn of_lock(alert: &Active) -> Option<(LockId, String)> {
    match &alert.subject {
        Subject::Lock(lock) => Some((lock.clone(), alert.holding.clone())),
        Subject::Prefix { .. } | Subject::Backend(_) => None,
    }
}

/// The lock of an event that ends a holding: its usual hold time has changed.
fn lock_of_end(event: HistoryEvent) -> Option<LockId> {
    let is_end = matches!(
        event.kind,
        EventKind::Released | EventKind::Expired | EventKind::Revoked | EventKind::ShareReleased
    );
    is_end.then_some(LockId {
        backend: event.backend,
        source: event.source,
        resource: event.resource,
    })
}
