//! Retention of the outbox: deletes old delivered and dead messages in small steps.

use domain::duration::millis;

use super::Notifier;
use super::limits::{DEAD_KEPT, DELIVERED_KEPT, PRUNED_MAX};
use crate::janitor::delete_batch;

const ENDED: &str = "DELETE FROM deliveries WHERE seq IN (
    SELECT seq FROM deliveries WHERE ended_at IS NOT NULL
    AND (ended_at < $1 OR (ended_at < $2 AND state = 'delivered')) ORDER BY seq LIMIT $3)";
const NOTICES: &str = "DELETE FROM notifications WHERE id IN (
    SELECT id FROM notifications n WHERE created_at < $1
    AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.notification_id = n.id) ORDER BY created_at LIMIT $2)";
/// The next notification of a group that was quiet for so long counts as a new one.
const GROUPS: &str = "DELETE FROM notification_groups WHERE (receiver_id, group_key) IN (
    SELECT receiver_id, group_key FROM notification_groups WHERE at < $1 LIMIT $2)";

impl Notifier {
    /// Deletes one batch; whether there may be more.
    pub(super) async fn prune(&self) -> Result<bool, sqlx::Error> {
        let now = self.now_ms();
        let (dead, delivered) = (now - millis(DEAD_KEPT), now - millis(DELIVERED_KEPT));
        let more_ended = delete_batch(self.db(), ENDED, &[dead, delivered, PRUNED_MAX]).await?;
        let more_notices = delete_batch(self.db(), NOTICES, &[delivered, PRUNED_MAX]).await?;
        let more_groups = delete_batch(self.db(), GROUPS, &[delivered, PRUNED_MAX]).await?;
        Ok(more_ended || more_notices || more_groups)
    }
}
