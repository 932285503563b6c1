//! Reads events and replays rules on them, on a blocking thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::alerts::{ConditionKind, Playback, Preview, RefusedAcquire, Rule};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::PreviewRun;
use super::current_state::Observed;
use crate::alerts::evaluator::recorded::split;
use crate::alerts::event_source::Start;
use crate::history::past_events::{EventReader, EventScope, IDS_PER_READ};
use runtime::db::Db;

pub(super) struct Played {
    /// In the order of the rules.
    pub(super) previews: Vec<Preview>,
    /// There are no events before the ones read.
    pub(super) is_everything: bool,
}

/// Input of the thread.
struct Work {
    rules: Vec<Rule>,
    history: Db,
    start: Start,
    last: i64,
    to: i64,
    /// Ordered by time.
    gaps: Vec<(i64, i64)>,
    refused: Vec<RefusedAcquire>,
    present: Observed,
    stop: CancellationToken,
    rows_read: Arc<AtomicU64>,
}

impl PreviewRun {
    /// Replays at most `most` events, the newest.
    pub(super) async fn play(&self, rules: Vec<Rule>, most: i64) -> Result<Played, sqlx::Error> {
        let (alerts, previews) = (&self.alerts, &self.alerts.previews);
        let turn = previews.turns.clone().acquire_owned().await;
        let turn = turn.map_err(|_| sqlx::Error::PoolClosed)?;
        let ledger = &alerts.ledger;
        let start = ledger.start(self.span.from, most).await?;
        let refused = match rules
            .iter()
            .any(|rule| rule.condition.kind == ConditionKind::Contention)
        {
            true => split(ledger.signals(start.at).await?).0,
            false => Vec::new(),
        };
        let work = Work {
            rules,
            history: previews.history.clone(),
            start,
            last: ledger.last_place().await?,
            to: self.span.to,
            gaps: ledger.gaps(start.at).await?,
            refused,
            present: Observed {
                inventory: alerts.inventory.clone(),
                now: alerts.clock.now(),
            },
            stop: self.stop.clone(),
            rows_read: previews.rows_read.clone(),
        };
        let runtime = Handle::current();
        let done = tokio::task::spawn_blocking(move || {
            let played = work.play(&runtime);
            drop(turn);
            played
        });
        let previews = done
            .await
            .map_err(|panic| sqlx::Error::Protocol(panic.to_string()))??;
        Ok(Played {
            previews,
            is_everything: start.at <= self.span.from,
        })
    }
}

impl Work {
    fn play(self, runtime: &Handle) -> Result<Vec<Preview>, sqlx::Error> {
        let reader = EventReader::open(&self.history, runtime, &EventScope::from_rules(&self.rules))?;
        let mut playback = Playback::new(&self.rules, self.start.at, self.to);
        playback.refused(&self.refused);
        let mut gaps = self.gaps.iter().peekable();
        let mut place = self.start.place;
        while place < self.last && !self.stop.is_cancelled() {
            let to = (place + IDS_PER_READ).min(self.last);
            let mut rows = 0;
            reader.read((place, to), &mut |names, resource, event| {
                rows += 1;
                while let Some((began, ended)) = gaps.next_if(|(began, _)| *began <= event.at) {
                    playback.gap(*began, *ended);
                }
                playback.event(&self.present, names, resource, event);
            })?;
            self.rows_read.fetch_add(rows, Ordering::Relaxed);
            place = to;
        }
        for (began, ended) in gaps {
            playback.gap(*began, *ended);
        }
        Ok(playback.finish(&self.present))
    }
}
