//! API tokens that work and that a user created. Disabling the user does not end them, because programs depend on
//! them; it names them, so that an admin revokes those that the user knows.

use super::Identity;
use super::created_credentials::Creator;
use super::error::IdentityError;
use runtime::db::{Tx, on_either};

/// Created by the user, directly or through tokens and links.
const SELECT: &str = "SELECT id, name FROM api_tokens
    WHERE id IN (SELECT id FROM created) AND revoked_at IS NULL
    AND (expires_at IS NULL OR expires_at > $2) ORDER BY name";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveToken {
    pub id: String,
    pub name: String,
}

impl Identity {
    /// By name.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn active_tokens_of(&self, user: &str) -> Result<Vec<ActiveToken>, IdentityError> {
        let now = self.now_ms();
        let rows: Vec<(String, String)> = on_either!(&self.db, Db, |pool| {
            let query = sqlx::query_as(Creator::User(user).with_created(SELECT))
                .bind(user)
                .bind(now);
            query.fetch_all(pool).await?
        });
        Ok(tokens(rows))
    }

    /// The same in the transaction of a change.
    pub(super) async fn read_active_tokens(
        &self,
        tx: &mut Tx,
        user: &str,
    ) -> Result<Vec<ActiveToken>, IdentityError> {
        let now = self.now_ms();
        let rows: Vec<(String, String)> = on_either!(tx, Tx, |tx| {
            let query = sqlx::query_as(Creator::User(user).with_created(SELECT))
                .bind(user)
                .bind(now);
            query.fetch_all(&mut **tx).await?
        });
        Ok(tokens(rows))
    }
}

fn tokens(rows: Vec<(String, String)>) -> Vec<ActiveToken> {
    let rows = rows.into_iter();
    rows.map(|(id, name)| ActiveToken { id, name }).collect()
}
