//! The outbox as the port that the evaluator speaks to.

use domain::notice::Notice;
use futures::future::BoxFuture;

use super::Notices;
use crate::db::Tx;
use crate::notify::Occasion;
use crate::notify::{self, Notifier};

impl Notices for Notifier {
    fn enqueue<'a>(
        &'a self,
        tx: &'a mut Tx,
        notice: &'a Notice,
        occasion: Occasion,
        now: i64,
    ) -> BoxFuture<'a, Result<(), sqlx::Error>> {
        Box::pin(async move {
            // How many are told is not the evaluator's affair: with no receiver the alert stands on the page.
            let _told = notify::enqueue_at(tx, notice, occasion, self.growth_factor(), now).await?;
            Ok(())
        })
    }

    fn wake(&self) {
        Notifier::wake(self);
    }
}
