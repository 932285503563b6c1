//! Implements the evaluator's port with the notification outbox.

use domain::notification::Notice;
use futures::future::BoxFuture;

use super::Notices;
use crate::notify::Occasion;
use crate::notify::{self, Notifier};
use runtime::db::Tx;

impl Notices for Notifier {
    fn enqueue<'a>(
        &'a self,
        tx: &'a mut Tx,
        notice: &'a Notice,
        occasion: Occasion,
        now: i64,
    ) -> BoxFuture<'a, Result<(), sqlx::Error>> {
        Box::pin(async move {
            // The number of receivers does not matter: without a receiver, the alert is shown on the page only.
            let _count = notify::enqueue_at(tx, notice, occasion, self.pacing(), now).await?;
            Ok(())
        })
    }

    fn wake(&self) {
        Notifier::wake(self);
    }

    fn receivers_added(&self) -> u64 {
        Notifier::receivers_added(self)
    }
}
