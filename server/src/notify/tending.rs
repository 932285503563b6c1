//! Keeping the outbox small: what arrived, and what was given up long ago, is removed in small steps.

use super::limits::{DEAD_KEPT, DELIVERED_KEPT, PRUNED_MAX};
use super::{Notifier, ms};
use crate::db::on_either;

impl Notifier {
    pub(super) async fn prune(&self) {
        if let Err(error) = self.try_prune().await {
            tracing::warn!("the outbox of notifications cannot be pruned: {error}");
        }
    }

    async fn try_prune(&self) -> Result<(), sqlx::Error> {
        let now = self.now_ms();
        let ended = "DELETE FROM deliveries WHERE seq IN (
            SELECT seq FROM deliveries WHERE ended_at IS NOT NULL
            AND (ended_at < $1 OR (ended_at < $2 AND state = 'delivered')) ORDER BY seq LIMIT $3)";
        let notices = "DELETE FROM notices WHERE id IN (
            SELECT id FROM notices n WHERE created_at < $1
            AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.notice_id = n.id) ORDER BY created_at LIMIT $2)";
        // Whoever is told of a group that was quiet for so long hears news.
        let groups = "DELETE FROM notice_groups WHERE at < $1";
        let arrived = now - ms(DELIVERED_KEPT);
        let mut tx = self.db().begin().await?;
        on_either!(&mut tx, Tx, |tx| {
            let query = sqlx::query(ended).bind(now - ms(DEAD_KEPT)).bind(arrived);
            query.bind(PRUNED_MAX).execute(&mut **tx).await?;
            let query = sqlx::query(notices).bind(arrived).bind(PRUNED_MAX);
            query.execute(&mut **tx).await?;
            sqlx::query(groups).bind(arrived).execute(&mut **tx).await?;
        });
        tx.commit().await
    }
}
