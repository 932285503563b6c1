//! What rules would have done on this installation's history: the newest part first, then the whole.
//!
//! History is read and played on a thread that may block, a few at a time. **Invariant:** a run that is dropped, because its
//! client left, stops with the rows that it reads at that moment.

mod cache;
mod play;
mod present;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::alerts::limits::PREVIEW_MS;
use domain::alerts::{Happened, PastKnown, Preview, Rule};
use domain::lease::StoreTime;
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::cache::PreviewCache;
use self::play::Played;
use super::Alerts;
use super::evaluator::recorded::split;
use crate::db::Db;
use crate::lease::RejectionRange;

/// Events of the newest part: the first figure is there before the rest is read.
const EVENTS_FIRST: i64 = 200_000;
/// Of one preview: of more, the newest are read, and it is said since when.
const EVENTS_MAX: i64 = 3_000_000;
/// Previews that read history at a time; each of them keeps a core busy.
const AT_ONCE: usize = 2;

/// What previews share.
pub(super) struct Previews {
    history: Db,
    cache: PreviewCache,
    turns: Arc<Semaphore>,
    rows_read: Arc<AtomicU64>,
}

impl Previews {
    pub(super) fn new(history: Db) -> Self {
        Self {
            history,
            cache: PreviewCache::default(),
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            rows_read: Arc::default(),
        }
    }
}

/// Of which time, and how many events at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreviewSpan {
    pub from: i64,
    pub to: i64,
    pub events_max: i64,
}

/// Previews of some rules as they come. Dropped, the work stops.
pub struct PreviewRun {
    alerts: Arc<Alerts>,
    rules: Vec<Rule>,
    span: PreviewSpan,
    /// What is read next; none: all is done.
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
    /// The last seven days.
    pub fn preview_run(self: &Arc<Self>, rules: Vec<Rule>) -> PreviewRun {
        let to = self.now();
        let span = PreviewSpan {
            from: to - PREVIEW_MS,
            to,
            events_max: EVENTS_MAX,
        };
        let is_cached = true;
        PreviewRun {
            is_cached,
            ..self.preview_run_of(rules, span)
        }
    }

    /// A span that no cache knows.
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

    /// The whole preview of one rule over the last seven days.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn preview(self: &Arc<Self>, rule: &Rule) -> Result<Preview, sqlx::Error> {
        self.preview_run(vec![rule.clone()]).whole().await
    }

    /// Previews that read history now.
    pub fn previews_running(&self) -> usize {
        AT_ONCE - self.previews.turns.available_permits()
    }

    /// Rows of history that previews have read so far.
    pub fn preview_rows_read(&self) -> u64 {
        self.previews.rows_read.load(Ordering::Relaxed)
    }
}

impl PreviewRun {
    /// The previews of all rules over the next part; none after the whole.
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

    /// Of the first rule, without its parts.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn whole(mut self) -> Result<Preview, sqlx::Error> {
        let (previews, _) = self.part(Part::Whole).await?;
        let preview = previews.into_iter().next();
        preview.ok_or_else(|| sqlx::Error::Protocol("a preview of no rule".to_owned()))
    }

    /// Answers which part it is: where the newest part is everything, the whole.
    async fn part(&mut self, part: Part) -> Result<(Vec<Preview>, Part), sqlx::Error> {
        let ledger = &self.alerts.ledger;
        let marks = match self.is_cached {
            true => ledger.marks(self.span.to).await?,
            false => None,
        };
        let cache = &self.alerts.previews.cache;
        if let Some(marks) = marks
            && let Some(previews) = cache.get(&self.rules, marks, self.span.to)
        {
            return Ok((previews, Part::Whole));
        }
        let most = match part {
            Part::Newest => EVENTS_FIRST.min(self.span.events_max),
            Part::Whole => self.span.events_max,
        };
        let of_events = |rule: &&Rule| rule.condition.kind.info().past == PastKnown::Events;
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
        if let (Some(marks), Part::Whole) = (marks, part) {
            cache.put(&self.rules, marks, &previews);
        }
        Ok((previews, part))
    }

    /// What was recorded elsewhere than in events; none: the past of this rule is in events.
    async fn counted(&self, rule: &Rule) -> Result<Option<Preview>, sqlx::Error> {
        let (ledger, PreviewSpan { from, to, .. }) = (&self.alerts.ledger, self.span);
        let recorded: Vec<Happened> = match rule.condition.kind.info().past {
            PastKnown::Events => return Ok(None),
            PastKnown::NotKept(_) => return Ok(Some(Preview::unknown(rule, (from, to)))),
            PastKnown::Rejections => {
                let range = RejectionRange {
                    after: ledger.last_rejection_before(from).await?,
                    to: i64::MAX,
                    since: StoreTime::from_ms(from),
                };
                ledger.rejections(range).await?
            }
            PastKnown::Unlocks => ledger.unlocks(from).await?,
            PastKnown::Counted => split(ledger.signals(from).await?).1,
        };
        Ok(Some(Preview::of_counts(rule, (from, to), &recorded)))
    }
}
