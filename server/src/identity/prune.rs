//! Retention of sessions and one-time links: deletes in small steps those that ended long ago.

use domain::duration::millis;

use super::Identity;
use super::limits::{ENDED_RETENTION, PRUNED_MAX};
use crate::janitor::delete_batch;

/// A session that created a token, a link or a session stays: what came from its own creator is found through it.
const SESSIONS: &str = "DELETE FROM sessions WHERE id IN (
    SELECT id FROM sessions s WHERE created_at < $1
    AND NOT EXISTS (SELECT 1 FROM api_tokens WHERE created_by_id = s.id)
    AND NOT EXISTS (SELECT 1 FROM one_time_links WHERE created_by_id = s.id)
    AND NOT EXISTS (SELECT 1 FROM sessions WHERE link_created_by_id = s.id) ORDER BY id LIMIT $2)";
const LINKS: &str = "DELETE FROM one_time_links WHERE secret_hash IN (
    SELECT secret_hash FROM one_time_links WHERE expires_at < $1 ORDER BY secret_hash LIMIT $2)";

impl Identity {
    /// Deletes one batch; whether there may be more.
    pub(super) async fn prune(&self) -> Result<bool, sqlx::Error> {
        let ended_before = self.now_ms() - millis(ENDED_RETENTION);
        let more_links = delete_batch(&self.db, LINKS, &[ended_before, PRUNED_MAX]).await?;
        let more_sessions = delete_batch(&self.db, SESSIONS, &[ended_before, PRUNED_MAX]).await?;
        Ok(more_links || more_sessions)
    }
}
