//! Previews: alerts that rules would have raised on the recorded history; the newest part first, then all of it.
//!
//! History is read and replayed on blocking threads, a few at a time. A repeated preview continues the replay of the
//! one before. **Invariant:** a dropped run, because its client disconnected, stops after the rows it is reading.

mod cache;
mod checkpoints;
mod current_state;
mod history_replay;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::alerts::limits::PREVIEW_MS;
use domain::alerts::{CountedEvent, HistorySource, Preview, Rule};
use domain::lease::StoreTime;
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::cache::PreviewCache;
use self::checkpoints::Checkpoints;
pub(super) use self::current_state::InventoryState;
use self::history_replay::Played;
use super::Alerts;
use super::evaluator::counted_events::split;
use lease::RejectionSpan;
use runtime::db::Db;

/// Events of the newest part, which gives a first result quickly.
const EVENTS_FIRST: i64 = 200_000;
/// Events per preview; of more, the newest are read, and the preview states since when.
const EVENTS_MAX: i64 = 3_000_000;
/// Begin of previews: a multiple of this, in milliseconds, so that a later one can continue an earlier one.
const FROM_STEP_MS: i64 = 3_600_000;
/// Concurrent previews; each uses a core.
const CONCURRENT_MAX: usize = 2;

/// State shared by previews.
pub(super) struct Previews {
    history: Db,
    cache: PreviewCache,
    checkpoints: Checkpoints,
    permits: Arc<Semaphore>,
    rows_read: Arc<AtomicU64>,
}

impl Previews {
    pub(super) fn new(history: Db) -> Self {
        Self {
            history,
            cache: PreviewCache::default(),
            checkpoints: Checkpoints::default(),
            permits: Arc::new(Semaphore::new(CONCURRENT_MAX)),
            rows_read: Arc::default(),
        }
    }

    pub(super) const fn history(&self) -> &Db {
        &self.history
    }

    /// Drops cached data that no preview has used for some time.
    pub(super) fn forget_unused(&self, now: i64) {
        self.checkpoints.forget_unused(now);
    }
}

/// Time range, and the maximum number of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreviewSpan {
    pub from: i64,
    pub to: i64,
    pub events_max: i64,
}

/// Previews of some rules, part by part. Stops when dropped.
pub struct PreviewRun {
    alerts: Arc<Alerts>,
    rules: Vec<Rule>,
    span: PreviewSpan,
    /// The next part; `None`: done.
    next: Option<Part>,
    is_cached: bool,
    stop: CancellationToken,
    _stops_with_it: DropGuard,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Newest,
    Whole,
}

impl Alerts {
    /// A run over the last seven days, from a full hour on.
    pub fn preview_run(self: &Arc<Self>, rules: Vec<Rule>) -> PreviewRun {
        let to = self.now();
        let earliest = to - PREVIEW_MS;
        let span = PreviewSpan {
            from: earliest - earliest.rem_euclid(FROM_STEP_MS),
            to,
            events_max: EVENTS_MAX,
        };
        let is_cached = true;
        PreviewRun {
            is_cached,
            ..self.preview_run_of(rules, span)
        }
    }

    /// A run over a time range, without the cache.
    pub fn preview_run_of(self: &Arc<Self>, rules: Vec<Rule>, span: PreviewSpan) -> PreviewRun {
        let stop = CancellationToken::new();
        PreviewRun {
            alerts: self.clone(),
            rules,
            span,
            next: Some(Part::Newest),
            is_cached: false,
            _stops_with_it: stop.clone().drop_guard(),
            stop,
        }
    }

    /// The complete preview of one rule over the last seven days.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn preview(self: &Arc<Self>, rule: &Rule) -> Result<Preview, sqlx::Error> {
        self.preview_run(vec![rule.clone()]).complete().await
    }

    /// Previews in progress.
    pub fn previews_running(&self) -> usize {
        CONCURRENT_MAX - self.previews.permits.available_permits()
    }

    /// History rows read by previews so far.
    pub fn preview_rows_read(&self) -> u64 {
        self.previews.rows_read.load(Ordering::Relaxed)
    }
}

impl PreviewRun {
    /// Previews of all rules over the next part; `None` after the last one.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn next(&mut self) -> Option<Result<Vec<Preview>, sqlx::Error>> {
        let part = self.next.take()?;
        let found = self.part(part).await;
        if let Ok((_, Part::Newest)) = found {
            self.next = Some(Part::Whole);
        }
        Some(found.map(|(previews, _)| previews))
    }

    /// The complete preview of the first rule.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn complete(mut self) -> Result<Preview, sqlx::Error> {
        let (previews, _) = self.part(Part::Whole).await?;
        let preview = previews.into_iter().next();
        preview.ok_or_else(|| sqlx::Error::Protocol("this preview belongs to no rule".to_owned()))
    }

    /// The latest end of a later run that continues this one.
    const fn to_max(&self) -> i64 {
        match self.is_cached {
            true => self.span.from + PREVIEW_MS + FROM_STEP_MS,
            false => self.span.to,
        }
    }

    /// Returns which part it was: the last one if the newest part covers everything.
    async fn part(&mut self, part: Part) -> Result<(Vec<Preview>, Part), sqlx::Error> {
        let ledger = &self.alerts.ledger;
        let positions = match self.is_cached {
            true => ledger.positions(self.span.to).await?,
            false => None,
        };
        let cache = &self.alerts.previews.cache;
        if let Some(positions) = positions
            && let Some(previews) = cache.get(&self.rules, positions, self.span.to)
        {
            return Ok((previews, Part::Whole));
        }
        let most = match part {
            Part::Newest => EVENTS_FIRST.min(self.span.events_max),
            Part::Whole => self.span.events_max,
        };
        let of_events = |rule: &&Rule| rule.condition.kind.info().past == HistorySource::Events;
        let rules: Vec<Rule> = self.rules.iter().filter(of_events).cloned().collect();
        let mut part = Part::Whole;
        let mut played = Vec::new();
        if !rules.is_empty() {
            let Played {
                previews,
                is_everything,
            } = self.play(rules, most).await?;
            if !is_everything && most < self.span.events_max {
                part = Part::Newest;
            }
            played = previews;
        }
        let mut played = played.into_iter();
        let mut previews = Vec::with_capacity(self.rules.len());
        for rule in &self.rules {
            let counted = self.counted(rule).await?;
            previews.extend(counted.or_else(|| played.next()));
        }
        for preview in &mut previews {
            let is_short = preview.from > self.span.from;
            preview.is_partial = is_short && part == Part::Newest;
            preview.is_cut = is_short && part == Part::Whole;
        }
        if let (Some(positions), Part::Whole) = (positions, part) {
            cache.put(&self.rules, positions, &previews);
        }
        Ok((previews, part))
    }

    /// Preview of a rule that counts records instead of events; `None` for other rules.
    async fn counted(&self, rule: &Rule) -> Result<Option<Preview>, sqlx::Error> {
        let (ledger, PreviewSpan { from, to, .. }) = (&self.alerts.ledger, self.span);
        let recorded: Vec<CountedEvent> = match rule.condition.kind.info().past {
            HistorySource::Events => return Ok(None),
            HistorySource::NotKept(_) => return Ok(Some(Preview::unknown(rule, (from, to)))),
            HistorySource::Rejections => {
                let span = RejectionSpan {
                    after: ledger.last_rejection_before(from).await?,
                    to: None,
                    since: StoreTime::from_ms(from),
                };
                ledger.rejections(span).await?
            }
            HistorySource::Unlocks => ledger.unlocks(from).await?,
            HistorySource::Counted => split(ledger.signals(from).await?).1,
        };
        Ok(Some(Preview::of_counts(rule, (from, to), &recorded)))
    }
}
