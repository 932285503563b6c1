//! Writes the outcome of a round, with its notifications, in one transaction.

use std::collections::HashMap;

use domain::alerts::limits::{EVALUATE_EVERY_MS, UNWATCHED_AFTER_MS};
use domain::alerts::{Active, NotificationRound, RoundOutcome, Rule, Silence};

use super::Evaluator;
use crate::alerts::alert_cache::raise_revision;
use crate::alerts::store;
use crate::notify::Occasion;

/// Without changes, the interval in milliseconds at which the evaluation time is stored.
const NOTE_EVERY_MS: i64 = UNWATCHED_AFTER_MS / 3;

impl Evaluator {
    /// `false`: another replica is the leader now, and nothing was written.
    pub(super) async fn write(
        &mut self,
        token: i64,
        mut outcome: RoundOutcome,
        history: NotificationRound,
        before: &HashMap<i64, Active>,
        (rules, silences, receivers_added): (&[Rule], &[Silence], i64),
        now: i64,
    ) -> Result<bool, sqlx::Error> {
        for index in &history.notified {
            let alert = &mut outcome.active[*index];
            if let Some(rule) = rules.iter().find(|rule| rule.id == alert.rule) {
                alert.mark_notified(rule, receivers_added);
            }
        }
        for (index, silence) in &history.suppressed {
            outcome.active[*index].silenced_by = Some(silence.clone());
        }
        let changed = outcome.active.iter().filter(|alert| {
            let old = before.get(&alert.id);
            !old.is_some_and(|old| equals_stored(old, alert, now))
        });
        let changed: Vec<&Active> = changed.collect();
        let has_changes = !outcome.over.is_empty() || !changed.is_empty() || !history.is_nothing();
        if !has_changes && history.storms.is_empty() && now - self.noted_at < NOTE_EVERY_MS {
            return Ok(true);
        }
        let mut tx = self.alerts.db.begin().await?;
        if store::claim(&mut tx, token, now).await?.is_none() {
            // Another replica has become leader since.
            self.leader.resign().await;
            self.is_first = true;
            return Ok(false);
        }
        if has_changes {
            raise_revision(&mut tx).await?;
        }
        // Ended alerts first: the same subject may start again.
        for (alert, change) in &outcome.over {
            store::end(&mut tx, alert, *change, now).await?;
        }
        for alert in changed {
            store::upsert(&mut tx, alert).await?;
        }
        for silence in silences {
            let count = history
                .suppressed
                .iter()
                .filter(|(_, id)| *id == silence.id)
                .count();
            if count > 0 {
                store::suppressed(&mut tx, &silence.id, count as i64).await?;
            }
        }
        let occasions = [
            (&history.notices, Occasion::Change),
            (&history.rerouted, Occasion::Reroute),
            (&history.storms, Occasion::Growth),
        ];
        for (notices, occasion) in occasions {
            for notice in notices {
                self.notices.enqueue(&mut tx, notice, occasion, now).await?;
            }
        }
        tx.commit().await?;
        self.noted_at = now;
        if has_changes {
            self.alerts.cache.mark_written();
        }
        if occasions.iter().any(|(notices, _)| !notices.is_empty()) {
            self.notices.wake();
        }
        Ok(true)
    }
}

/// Texts that change with time alone are stored only from time to time.
fn equals_stored(old: &Active, new: &Active, now: i64) -> bool {
    let is_same_except_texts = old.phase == new.phase
        && old.rule_prefix == new.rule_prefix
        && old.owner == new.owner
        && old.notified == new.notified
        && old.notified_route == new.notified_route
        && old.silenced_by == new.silenced_by;
    is_same_except_texts && (old.why == new.why || (now / EVALUATE_EVERY_MS) % 10 != 0)
}
