//! Windows of rules on prefixes: a rule that is new, or whose window or scope changes, reads the past again before it is
//! evaluated, in steps between the evaluations.

use domain::alerts::{Playback, Rule, RuleWindows};
use tokio::runtime::Handle;

use super::{Evaluator, LEARN_MS};
use crate::alerts::previews::InventoryState;
use crate::history::past_events::{EventReader, EventScope, IDS_PER_READ};

/// Ids per round and rule set.
const IDS_PER_ROUND: i64 = 16 * IDS_PER_READ;

#[derive(Default)]
pub(super) struct WindowLearner {
    /// The past of new rules, in progress.
    replay: Option<Replay>,
    /// Entries that are not counted were reported in the log.
    has_warned: bool,
}

struct Replay {
    rules: Vec<Rule>,
    playback: Playback,
    position: i64,
}

impl Evaluator {
    /// Gives every enabled rule on prefixes its windows. Rules that wait for their past are not evaluated.
    pub(super) async fn learn_windows(&mut self, rules: &[Rule], now: i64) -> Result<(), sqlx::Error> {
        let missing: Vec<Rule> = {
            let mut baseline = self.alerts.inventory.long_held().baseline_mut();
            let missing = baseline.follow_windows(rules, now).into_iter().cloned().collect();
            self.windows.warn(baseline.uncounted());
            missing
        };
        if missing.is_empty() {
            self.windows.replay = None;
            return Ok(());
        }
        let Some(learned) = self.position else {
            // No history has been read yet.
            let empty = missing.iter().map(RuleWindows::new);
            self.alerts
                .inventory
                .long_held()
                .baseline_mut()
                .add_windows(empty);
            return Ok(());
        };
        let replay = self.windows.replay.take();
        let replay = match replay.filter(|replay| replay.rules == missing) {
            Some(replay) => replay,
            None => Replay {
                playback: Playback::new(&missing, now - LEARN_MS, now),
                position: self.alerts.ledger.position_before(now - LEARN_MS).await?,
                rules: missing,
            },
        };
        let to = learned.min(replay.position + IDS_PER_ROUND);
        let replay = self.read_past(replay, to).await?;
        if replay.position < learned {
            self.windows.replay = Some(replay);
            return Ok(());
        }
        let windows = replay.playback.into_windows();
        self.alerts
            .inventory
            .long_held()
            .baseline_mut()
            .add_windows(windows);
        Ok(())
    }

    async fn read_past(&self, mut replay: Replay, to: i64) -> Result<Replay, sqlx::Error> {
        let history = self.alerts.previews.history().clone();
        let present = InventoryState {
            inventory: self.alerts.inventory.clone(),
            now: self.alerts.clock.now(),
        };
        let runtime = Handle::current();
        let read = tokio::task::spawn_blocking(move || {
            let reader = EventReader::open(&history, &runtime, &EventScope::from_rules(&replay.rules))?;
            while replay.position < to {
                let end = (replay.position + IDS_PER_READ).min(to);
                reader.read((replay.position, end), &mut |names, resource, event| {
                    replay.playback.event(&present, names, resource, event);
                })?;
                replay.position = end;
            }
            Ok(replay)
        });
        read.await
            .map_err(|panic| sqlx::Error::Protocol(panic.to_string()))?
    }
}

impl WindowLearner {
    fn warn(&mut self, uncounted: u64) {
        if uncounted > 0 && !self.has_warned {
            tracing::warn!(
                events.uncounted = uncounted,
                "names have more prefixes than an alert rule counts: events of further prefixes are not counted"
            );
        }
        self.has_warned = uncounted > 0;
    }
}
