//! What a rule would have done on this installation's history.

use domain::alerts::limits::PREVIEW_MS;
use domain::alerts::{Happened, Kind, PastKnown, Preview, Replay, Rule};
use domain::detail::EventKind;
use domain::history::HistoryEvent;
use domain::lease::StoreTime;
use domain::names::{BackendName, Resource, Source};

use super::Alerts;
use super::evaluator::recorded::split;
use super::ledger::Start;
use crate::lease::RejectionRange;

/// Rows of one statement.
const ROWS: i64 = 50_000;
/// Of one preview: of more, the newest are read, and it is said since when.
const EVENTS_MAX: i64 = 3_000_000;

impl Alerts {
    /// # Errors
    /// The store does not answer.
    pub async fn preview(&self, rule: &Rule) -> Result<Preview, sqlx::Error> {
        let to = self.now();
        self.preview_of(rule, to - PREVIEW_MS, to).await
    }

    /// # Errors
    /// The store does not answer.
    pub async fn preview_of(&self, rule: &Rule, from: i64, to: i64) -> Result<Preview, sqlx::Error> {
        self.preview_within(rule, (from, to), EVENTS_MAX).await
    }

    /// Of at most so many events.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn preview_within(
        &self,
        rule: &Rule,
        (from, to): (i64, i64),
        most: i64,
    ) -> Result<Preview, sqlx::Error> {
        match rule.condition.kind.info().past {
            PastKnown::Events => {
                let start = self.ledger.start(from, most).await?;
                let mut replay = Replay::new(rule, start.at, to);
                if rule.condition.kind == Kind::Contention {
                    replay.refused(split(self.ledger.signals(start.at).await?).0);
                }
                self.play(&mut replay, &start).await?;
                let mut preview = replay.finish();
                preview.is_cut = start.at > from;
                Ok(preview)
            }
            PastKnown::Rejections => {
                let range = RejectionRange {
                    after: self.ledger.last_rejection_before(from).await?,
                    to: i64::MAX,
                    since: StoreTime::from_ms(from),
                };
                Ok(replay_of(rule, (from, to), &self.ledger.rejections(range).await?))
            }
            PastKnown::Unlocks => Ok(replay_of(rule, (from, to), &self.ledger.unlocks(from).await?)),
            PastKnown::Counted => {
                let (_, failed) = split(self.ledger.signals(from).await?);
                Ok(replay_of(rule, (from, to), &failed))
            }
            PastKnown::NotKept(_) => Ok(Replay::new(rule, from, to).finish()),
        }
    }

    async fn play(&self, replay: &mut Replay<'_>, start: &Start) -> Result<(), sqlx::Error> {
        let gaps = self.ledger.gaps(start.at).await?.into_iter();
        let mut edges =
            gaps.flat_map(|(began, ended)| [(began, EventKind::Unwatched), (ended, EventKind::WatchedAgain)]);
        let mut next = edges.next();
        let mut place = start.place;
        loop {
            let rows = self.ledger.events(place, ROWS).await?;
            let is_last = (rows.len() as i64) < ROWS;
            for (at, event) in rows {
                place = place.max(at);
                while let Some((edge, kind)) = next.filter(|(edge, _)| *edge <= event.at) {
                    replay.event(&edge_of(edge, kind));
                    next = edges.next();
                }
                replay.event(&event);
            }
            // Others want to be answered too.
            tokio::task::yield_now().await;
            if is_last {
                break;
            }
        }
        while let Some((edge, kind)) = next {
            replay.event(&edge_of(edge, kind));
            next = edges.next();
        }
        Ok(())
    }
}

fn replay_of(rule: &Rule, (from, to): (i64, i64), recorded: &[Happened]) -> Preview {
    let mut replay = Replay::new(rule, from, to);
    replay.happened(recorded);
    replay.finish()
}

fn edge_of(at: i64, kind: EventKind) -> HistoryEvent {
    HistoryEvent {
        at,
        kind,
        backend: BackendName::builtin(),
        source: Source::fixed("lease"),
        resource: Resource::from(""),
        owner: None,
        token: None,
        ttl_ms: None,
        waiters: None,
        waited_ms: None,
        run: None,
        is_sampled: false,
    }
}
