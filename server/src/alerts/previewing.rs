//! What a rule would have done on this installation's history.

use domain::alerts::limits::PREVIEW_MS;
use domain::alerts::{Preview, Replay, Rule};
use domain::detail::EventKind;
use domain::history::HistoryEvent;
use domain::names::{BackendName, Resource, Source};

use super::Alerts;

/// Rows of one statement, and of one preview: what goes beyond is left out and said.
const ROWS: i64 = 50_000;
const EVENTS_MAX: u64 = 3_000_000;

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
        let mut replay = Replay::new(rule, from, to);
        match rule.condition.kind.info().past {
            domain::alerts::PastKnown::Events => self.play(&mut replay, from).await?,
            domain::alerts::PastKnown::Rejections | domain::alerts::PastKnown::Unlocks => {
                replay.happened(&self.ledger.recorded(from).await?);
            }
            domain::alerts::PastKnown::NotKept(_) => {}
        }
        Ok(replay.finish())
    }

    async fn play(&self, replay: &mut Replay<'_>, from: i64) -> Result<(), sqlx::Error> {
        let mut edges = self
            .ledger
            .gaps(from)
            .await?
            .into_iter()
            .flat_map(|(began, ended)| [(began, EventKind::Unwatched), (ended, EventKind::WatchedAgain)]);
        let mut next = edges.next();
        let mut place = self.ledger.place_of(from).await?;
        let mut count = 0;
        loop {
            let rows = self.ledger.events(place, ROWS).await?;
            let is_last = (rows.len() as i64) < ROWS;
            for (at, event) in rows {
                place = place.max(at);
                count += 1;
                while let Some((edge, kind)) = next.filter(|(edge, _)| *edge <= event.at) {
                    replay.event(&edge_of(edge, kind));
                    next = edges.next();
                }
                replay.event(&event);
            }
            // Others want to be answered too.
            tokio::task::yield_now().await;
            if is_last || count >= EVENTS_MAX {
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
        run: None,
        is_sampled: false,
    }
}
