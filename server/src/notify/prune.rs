//! Retention of the outbox: deletes old delivered and dead messages in small steps.

use domain::duration::millis;

use super::Notifier;
use super::limits::{DEAD_LETTER_RETENTION, DELIVERED_RETENTION, PRUNED_MAX};
use crate::janitor::delete_batch;

/// The last delivered message of a group stays while it lists a firing alert (`ends_at` is null) and its rule has open alerts:
/// it determines which receivers are sent the resolution. The key of a group of alerts begins with the id of its rule.
const ENDED: &str = "DELETE FROM deliveries WHERE seq IN (
    SELECT d.seq FROM deliveries d JOIN notifications n ON n.id = d.notification_id WHERE d.ended_at IS NOT NULL
    AND (d.ended_at < $1 OR (d.ended_at < $2 AND d.state = 'delivered'))
    AND NOT (d.state = 'delivered' AND n.body LIKE '%\"ends_at\":null%'
        AND EXISTS (SELECT 1 FROM alerts a WHERE a.is_open = 1
            AND a.rule_id || '/' = substr(d.group_key, 1, length(a.rule_id) + 1))
        AND d.seq IN (SELECT max(seq) FROM deliveries WHERE state <> 'dead' GROUP BY receiver_id, group_key))
    ORDER BY d.seq LIMIT $3)";
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
        let (dead, delivered) = (
            now - millis(DEAD_LETTER_RETENTION),
            now - millis(DELIVERED_RETENTION),
        );
        let more_ended = delete_batch(self.db(), ENDED, &[dead, delivered, PRUNED_MAX]).await?;
        let more_notices = delete_batch(self.db(), NOTICES, &[delivered, PRUNED_MAX]).await?;
        let more_groups = delete_batch(self.db(), GROUPS, &[delivered, PRUNED_MAX]).await?;
        Ok(more_ended || more_notices || more_groups)
    }
}
