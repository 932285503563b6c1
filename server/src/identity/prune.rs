//! Retention of sessions, one-time links and finished sign-ins: deletes in small steps those that ended long ago.

use domain::duration::millis;
use runtime::db::Db;

use super::Identity;
use super::limits::{ENDED_RETENTION, FLOW_MAX, PRUNED_MAX, SKEW_MAX};
use crate::janitor::delete_batch;

/// A statement up to the end of its subquery: for SQLite, and for Postgres, where a change of a user's credentials may have
/// locked some of the rows, in an order of its own. These are left to the next deletion, so that neither waits for the other.
macro_rules! on_each_store {
    ($delete:literal) => {
        [
            concat!($delete, ")"),
            concat!($delete, " FOR UPDATE SKIP LOCKED)"),
        ]
    };
}

/// A session that created a token, a link or a session stays: what came from its own creator is found through it.
const SESSIONS: [&str; 2] = on_each_store!(
    "DELETE FROM sessions WHERE id IN (
    SELECT id FROM sessions s WHERE created_at < $1
    AND NOT EXISTS (SELECT 1 FROM api_tokens WHERE created_by_id = s.id)
    AND NOT EXISTS (SELECT 1 FROM one_time_links WHERE created_by_id = s.id)
    AND NOT EXISTS (SELECT 1 FROM sessions WHERE link_created_by_id = s.id) ORDER BY id LIMIT $2"
);
const FINISHED_FLOWS: [&str; 2] = on_each_store!(
    "DELETE FROM oidc_finished_flows WHERE secret_hash IN (
    SELECT secret_hash FROM oidc_finished_flows WHERE begun_at < $1 ORDER BY secret_hash LIMIT $2"
);
const LINKS: [&str; 2] = on_each_store!(
    "DELETE FROM one_time_links WHERE secret_hash IN (
    SELECT secret_hash FROM one_time_links WHERE expires_at < $1 ORDER BY secret_hash LIMIT $2"
);

impl Identity {
    /// Deletes one batch; whether there may be more.
    pub(super) async fn prune(&self) -> Result<bool, sqlx::Error> {
        let now = self.now_ms();
        let ended_before = now - millis(ENDED_RETENTION);
        // Another server's clock may be behind ours.
        let begun_before = now - millis(FLOW_MAX) - millis(SKEW_MAX);
        let of_store = |[sqlite, postgres]: [&'static str; 2]| match &self.db {
            Db::Sqlite(_) => sqlite,
            Db::Postgres(_) => postgres,
        };
        let mut may_be_more = false;
        for (delete, before) in [
            (FINISHED_FLOWS, begun_before),
            (LINKS, ended_before),
            (SESSIONS, ended_before),
        ] {
            may_be_more |= delete_batch(&self.db, of_store(delete), &[before, PRUNED_MAX]).await?;
        }
        Ok(may_be_more)
    }
}
