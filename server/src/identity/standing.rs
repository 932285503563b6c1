//! Whether somebody who was let in may still stay: for streams and for those who wait, which outlive the one look at the
//! door.

use sqlx::Row as _;

use super::Identity;
use super::limits::{SESSION_IDLE, SESSION_MAX, STREAM_LOOK};
use super::sessions::{Session, ms};
use super::who::{Subject, Who};
use crate::db::on_either;

impl Identity {
    /// Resolves when `who` may not go on as they began: the token was revoked or has expired, the person was disabled,
    /// the session has ended, or what they may do has changed.
    pub async fn gone(&self, who: &Who) {
        let mut changes = self.directory.subscribe();
        while self.stands(who).await {
            // Either a change, or time.
            let _changed = tokio::time::timeout(STREAM_LOOK, changes.changed()).await;
        }
    }

    async fn stands(&self, who: &Who) -> bool {
        match &who.subject {
            Subject::Anonymous => true,
            Subject::Token { id, .. } => {
                let directory = self.directory();
                let token = directory.tokens.values().find(|token| token.id == *id);
                token.is_some_and(|token| !self.has_expired(token) && token.grants == who.grants)
            }
            Subject::Person { .. } => {
                let Some(session) = &who.session else { return true };
                let person = self.person_of(session);
                // A store that does not answer has revoked nothing either.
                person.is_some_and(|person| person.grants == who.grants)
                    && self.is_alive(session).await.unwrap_or(true)
            }
        }
    }

    async fn is_alive(&self, session: &Session) -> Result<bool, sqlx::Error> {
        let now = self.now_ms();
        let select = "SELECT count(*) FROM sessions
            WHERE id = $1 AND ended_at IS NULL AND created_at > $2 AND seen_at > $3";
        let count: i64 = on_either!(&self.db, Db, |pool| {
            let query = sqlx::query(select).bind(&session.id);
            let query = query.bind(now - ms(SESSION_MAX)).bind(now - ms(SESSION_IDLE));
            query.fetch_one(pool).await?.try_get(0)?
        });
        Ok(count > 0)
    }
}
