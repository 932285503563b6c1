//! What every server does, also while another one evaluates: it reads rules and history, and names locks long-held by them.

use domain::alerts::{Active, Rule, Subject};
use domain::detail::EventKind;
use domain::history::HistoryEvent;
use domain::names::LockId;

use super::super::book::Book;
use super::Evaluator;
use crate::inventory::Alerted;

impl Evaluator {
    /// Another server evaluates.
    pub(super) async fn follow(&mut self) -> Result<(), sqlx::Error> {
        let at = self.alerts.now();
        let marks = self.alerts.ledger.marks(at).await?;
        let book = self
            .alerts
            .book_of(marks.and_then(|marks| marks.revision))
            .await?;
        self.name_long_held(&book).await;
        let due = self.news.due(marks, book.revision, at);
        if due.events || self.is_behind {
            self.learn(at).await?;
        }
        self.news.read(marks);
        Ok(())
    }

    /// The state `long_held` follows the enabled rules on it, and their open alerts.
    pub(super) async fn name_long_held(&self, book: &Book) {
        let mut rules = book.rules();
        rules.retain(Rule::is_long_held);
        let open = book.open.iter().map(|kept| &kept.alert);
        let open = open.filter(|alert| rules.iter().any(|rule| rule.id == alert.rule));
        let alerted: Alerted = open.filter_map(of_lock).collect();
        let inventory = self.alerts.inventory.clone();
        // There may be a million locks to judge again.
        let judged = tokio::task::spawn_blocking(move || inventory.follow_long_held(rules, alerted));
        // A panic was logged; then the states stay as they were.
        let _ = judged.await;
    }

    /// Answers the place of the last row.
    pub(super) async fn apply(&self, rows: Vec<(i64, HistoryEvent)>, mut place: i64) -> i64 {
        let inventory = self.alerts.inventory.clone();
        let mut ended = Vec::new();
        let is_forgotten = {
            let mut past = inventory.long_held().past_mut();
            let forgotten = past.forgotten();
            for (at, event) in rows {
                place = place.max(at);
                past.apply(&event);
                ended.extend(lock_of_end(event));
            }
            past.forgotten() != forgotten
        };
        if is_forgotten || !ended.is_empty() {
            let judged = tokio::task::spawn_blocking(move || match is_forgotten {
                true => inventory.judge_all_again(),
                false => inventory.judge_again(&ended),
            });
            let _ = judged.await;
        }
        place
    }
}

fn of_lock(alert: &Active) -> Option<(LockId, String)> {
    match &alert.subject {
        Subject::Lock(lock) => Some((lock.clone(), alert.holding.clone())),
        Subject::Prefix { .. } | Subject::Backend(_) => None,
    }
}

/// Its usual hold time is another one now.
fn lock_of_end(event: HistoryEvent) -> Option<LockId> {
    let is_end = matches!(
        event.kind,
        EventKind::Released | EventKind::Expired | EventKind::Revoked
    );
    is_end.then_some(LockId {
        backend: event.backend,
        source: event.source,
        resource: event.resource,
    })
}
