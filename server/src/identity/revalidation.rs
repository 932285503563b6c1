//! Revalidation of long requests: streams and waits that outlive the check at their start.

use domain::duration::millis;
use sqlx::Row as _;

use super::Identity;
use super::limits::{SESSION_IDLE, SESSION_MAX, STREAM_CHECK_INTERVAL};
use super::principal::{Principal, Subject};
use super::sessions::Session;
use runtime::db::on_either;

impl Identity {
    /// Resolves when `who` loses access: token revoked or expired, user disabled, session ended, or permissions
    /// changed.
    pub async fn access_lost(&self, who: &Principal) {
        let mut changes = self.directory.subscribe();
        while self.is_valid(who).await {
            // Wakes on a change of the directory or by time.
            let _changed = tokio::time::timeout(STREAM_CHECK_INTERVAL, changes.changed()).await;
        }
    }

    async fn is_valid(&self, who: &Principal) -> bool {
        match &who.subject {
            Subject::Anonymous => true,
            Subject::Token { id, .. } => {
                let directory = self.directory();
                let token = directory.tokens.values().find(|token| token.id == *id);
                token.is_some_and(|token| !self.has_expired(token) && token.grants == who.grants)
            }
            Subject::User { .. } => {
                let Some(session) = &who.session else { return true };
                let user = self.user_of(session);
                // A store that does not answer has not revoked anything.
                user.is_some_and(|user| user.grants == who.grants)
                    && self.is_alive(session).await.unwrap_or(true)
            }
        }
    }

    async fn is_alive(&self, session: &Session) -> Result<bool, sqlx::Error> {
        let now = self.now_ms();
        let select = "SELECT count(*) FROM sessions
            WHERE id = $1 AND ended_at IS NULL AND created_at > $2 AND last_seen_at > $3";
        let count: i64 = on_either!(&self.db, Db, |pool| {
            let query = sqlx::query(select).bind(&session.id);
            let query = query
                .bind(now - millis(SESSION_MAX))
                .bind(now - millis(SESSION_IDLE));
            query.fetch_one(pool).await?.try_get(0)?
        });
        Ok(count > 0)
    }
}
