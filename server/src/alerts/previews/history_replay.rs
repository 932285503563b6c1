//! Reads events and replays rules on them, on a blocking thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::alerts::{ConditionKind, Gap, Playback, Preview, RefusedAcquire, Rule};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::PreviewRun;
use super::checkpoints::Checkpoint;
use super::current_state::InventoryState;
use crate::alerts::evaluator::counted_events::split;
use crate::history::past_events::{EventReader, EventScope, IDS_PER_READ};
use runtime::db::Db;

/// Older rows do not change: a row of renewals grows for at most an hour after its time.
const SETTLED_MS: i64 = 65 * 60_000;

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
    begin: Arc<Checkpoint>,
    /// Where to make the next checkpoint: position and time.
    settled: Option<(i64, i64)>,
    last: i64,
    to: i64,
    /// Ordered by time.
    gaps: Arc<[Gap]>,
    refused: Vec<RefusedAcquire>,
    present: InventoryState,
    stop: CancellationToken,
    rows_read: Arc<AtomicU64>,
}

impl PreviewRun {
    /// Replays at most `most` events, the newest; more if an earlier replay is continued.
    pub(super) async fn play(&self, rules: Vec<Rule>, most: i64) -> Result<Played, sqlx::Error> {
        let (alerts, previews) = (&self.alerts, &self.alerts.previews);
        let permit = previews.permits.clone().acquire_owned().await;
        let permit = permit.map_err(|_| sqlx::Error::PoolClosed)?;
        let begin = self.begin(&rules, most).await?;
        let start_at = begin.start_at;
        let work = self.work(rules.clone(), begin, most).await?;
        let runtime = Handle::current();
        let done = tokio::task::spawn_blocking(move || {
            let played = work.play(&runtime);
            drop(permit);
            played
        });
        let (finished, checkpoint) = done
            .await
            .map_err(|panic| sqlx::Error::Protocol(panic.to_string()))??;
        if let Some(checkpoint) = checkpoint {
            let (from, now) = (self.span.from, alerts.now());
            previews.checkpoints.put(&rules, from, Arc::new(checkpoint), now);
        }
        Ok(Played {
            previews: finished,
            is_everything: start_at <= self.span.from,
        })
    }

    /// An earlier replay of the same rules, or the beginning of one.
    async fn begin(&self, rules: &[Rule], most: i64) -> Result<Arc<Checkpoint>, sqlx::Error> {
        let (ledger, previews) = (&self.alerts.ledger, &self.alerts.previews);
        if self.is_cached
            && let Some(known) = previews.checkpoints.get(rules, self.span.from, self.alerts.now())
            && known.has_same_gaps(&ledger.gaps(known.start_at).await?)
        {
            return Ok(known);
        }
        let start = ledger.start(self.span.from, most).await?;
        Ok(Arc::new(Checkpoint {
            playback: Playback::new(rules, start.at, self.to_max()),
            start_at: start.at,
            position: start.position,
            settled_at: start.at,
            gaps: 0,
            last_at: i64::MIN,
            all_gaps: Arc::default(),
        }))
    }

    async fn work(&self, rules: Vec<Rule>, begin: Arc<Checkpoint>, most: i64) -> Result<Work, sqlx::Error> {
        let (alerts, previews) = (&self.alerts, &self.alerts.previews);
        let ledger = &alerts.ledger;
        let is_contention = |rule: &Rule| rule.condition.kind == ConditionKind::Contention;
        let refused = match rules.iter().any(is_contention) {
            true => split(ledger.signals(begin.settled_at).await?).0,
            false => Vec::new(),
        };
        let last = ledger.last_position().await?;
        let settled_at = self.span.to - SETTLED_MS;
        let is_whole = most == self.span.events_max || begin.last_at > i64::MIN;
        let settled = match self.is_cached && is_whole {
            true => Some((
                ledger.recent_position_before(settled_at).await?.min(last),
                settled_at,
            )),
            false => None,
        };
        Ok(Work {
            rules,
            history: previews.history.clone(),
            settled: settled.filter(|(position, _)| *position > begin.position),
            last,
            to: self.span.to,
            gaps: ledger.gaps(begin.start_at).await?.into(),
            begin,
            refused,
            present: InventoryState {
                inventory: alerts.inventory.clone(),
                now: alerts.clock.now(),
            },
            stop: self.stop.clone(),
            rows_read: previews.rows_read.clone(),
        })
    }
}

/// A replay in progress.
struct Replay<'w> {
    work: &'w Work,
    reader: EventReader,
    playback: Playback,
    position: i64,
    gaps: usize,
    last_at: i64,
}

impl Work {
    fn play(self, runtime: &Handle) -> Result<(Vec<Preview>, Option<Checkpoint>), sqlx::Error> {
        let begin = &self.begin;
        let mut replay = Replay {
            reader: EventReader::open(&self.history, runtime, &EventScope::from_rules(&self.rules))?,
            playback: begin.playback.clone(),
            position: begin.position,
            gaps: begin.gaps,
            last_at: begin.last_at,
            work: &self,
        };
        replay.playback.refused(begin.settled_at, &self.refused);
        let mut checkpoint = None;
        if let Some((position, settled_at)) = self.settled {
            replay.read_to(position)?;
            checkpoint = (!self.stop.is_cancelled()).then(|| replay.checkpoint(settled_at));
        }
        replay.read_to(self.last)?;
        Ok((replay.finish(), checkpoint))
    }
}

impl Replay<'_> {
    fn read_to(&mut self, last: i64) -> Result<(), sqlx::Error> {
        let Self {
            work,
            reader,
            playback,
            position,
            gaps,
            last_at,
        } = self;
        while *position < last && !work.stop.is_cancelled() {
            let to = (*position + IDS_PER_READ).min(last);
            let mut rows = 0;
            reader.read((*position, to), &mut |names, resource, event| {
                rows += 1;
                while let Some(gap) = work.gaps.get(*gaps).filter(|gap| gap.began <= event.at) {
                    playback.gap(gap);
                    *gaps += 1;
                }
                *last_at = event.at.max(*last_at);
                playback.event(&work.present, names, resource, event);
            })?;
            work.rows_read.fetch_add(rows, Ordering::Relaxed);
            *position = to;
        }
        Ok(())
    }

    fn checkpoint(&self, settled_at: i64) -> Checkpoint {
        Checkpoint {
            playback: self.playback.clone(),
            start_at: self.work.begin.start_at,
            position: self.position,
            settled_at,
            gaps: self.gaps,
            last_at: self.last_at,
            all_gaps: self.work.gaps.clone(),
        }
    }

    fn finish(mut self) -> Vec<Preview> {
        for gap in &self.work.gaps[self.gaps..] {
            self.playback.gap(gap);
        }
        self.playback.finish(&self.work.present, self.work.to)
    }
}
