//! One sign-in flow. The browser holds its only secret; state, nonce and verifier are derived from it, so that the
//! stored row is useless to a reader.

use domain::duration::millis;
use domain::hex;
use sha2::{Digest as _, Sha256};
use sqlx::Row as _;

use super::OidcError;
use crate::identity::limits::{FLOW_MAX, FLOWS_MAX};
use crate::identity::secret::{self, Secret};
use crate::identity::{Identity, IdentityError};
use runtime::db::on_either;

const PREFIX: &str = "lho_";

/// The secret that the browser keeps in a cookie until the callback.
pub struct StartedFlow {
    pub secret: Secret,
}

/// A flow taken at its callback; it cannot be used again.
pub(super) struct Flow {
    secret: String,
    pub(super) next: String,
    /// The provider had to ask for the password again.
    pub(super) again: bool,
    /// Milliseconds since 1970.
    pub(super) begun_at: i64,
}

/// Values derived from the secret, each bound to one purpose.
pub(super) trait FlowValues {
    fn secret(&self) -> &str;

    fn state(&self) -> String {
        derive("state", self.secret())
    }

    fn nonce(&self) -> String {
        derive("nonce", self.secret())
    }

    /// The PKCE verifier: 64 hex characters.
    fn verifier(&self) -> String {
        derive("verifier", self.secret())
    }
}

impl FlowValues for StartedFlow {
    fn secret(&self) -> &str {
        self.secret.expose()
    }
}

impl FlowValues for Flow {
    fn secret(&self) -> &str {
        &self.secret
    }
}

fn derive(purpose: &str, secret: &str) -> String {
    hex::text(&Sha256::digest(format!("leasehold oidc {purpose} {secret}")))
}

impl Identity {
    /// Deletes expired flows, and the oldest when there are too many: a client that begins many flows does not block
    /// others.
    pub(super) async fn begin_flow(&self, next: &str, again: bool) -> Result<StartedFlow, IdentityError> {
        let secret = Secret::new(PREFIX)?;
        let now = self.now_ms();
        let forget = "DELETE FROM oidc_sign_ins WHERE started_at <= $1 OR secret_hash IN
            (SELECT secret_hash FROM oidc_sign_ins ORDER BY started_at DESC LIMIT 1000000 OFFSET $2)";
        let insert = "INSERT INTO oidc_sign_ins (secret_hash, next_path, reauthenticate, started_at)
            VALUES ($1, $2, $3, $4)";
        on_either!(&self.db, Db, |pool| {
            let query = sqlx::query(forget)
                .bind(now - millis(FLOW_MAX))
                .bind(FLOWS_MAX - 1);
            query.execute(pool).await?;
            let query = sqlx::query(insert).bind(secret.hash()).bind(next);
            let query = query.bind(i64::from(again)).bind(now);
            query.execute(pool).await?.rows_affected()
        });
        Ok(StartedFlow { secret })
    }

    /// Of concurrent callbacks with the same state, one gets the flow.
    pub(super) async fn take_flow(&self, cookie: &str, state: &str) -> Result<Flow, OidcError> {
        if cookie.is_empty() {
            return Err(OidcError::refused(
                "no_cookie",
                "this browser did not start the sign-in",
            ));
        }
        // State alone would let an attacker end another user's sign-in: the cookie is required too.
        let is_same = secret::hash(&derive("state", cookie)) == secret::hash(state);
        if !is_same {
            return Err(OidcError::refused(
                "wrong_state",
                "the state is not the one that was sent",
            ));
        }
        let take = "DELETE FROM oidc_sign_ins WHERE secret_hash = $1 AND started_at > $2
            RETURNING next_path, reauthenticate, started_at";
        let oldest = self.now_ms() - millis(FLOW_MAX);
        let taken = on_either!(&self.db, Db, |pool| {
            let query = sqlx::query(take).bind(secret::hash(cookie)).bind(oldest);
            match query.fetch_optional(pool).await? {
                None => None,
                Some(row) => Some(Flow {
                    secret: cookie.to_owned(),
                    next: row.try_get(0)?,
                    again: row.try_get::<i64, _>(1)? != 0,
                    begun_at: row.try_get(2)?,
                }),
            }
        });
        taken.ok_or_else(|| OidcError::refused("spent", "the attempt was used already or has expired"))
    }
}
