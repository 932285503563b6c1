//! One way to the provider and back. The browser holds the one secret; state, nonce and verifier are made from it, so that
//! the store holds nothing that could be used.

use domain::hex;
use sha2::{Digest as _, Sha256};
use sqlx::Row as _;

use super::OidcError;
use crate::db::on_either;
use crate::identity::limits::{FLOW_MAX, FLOWS_MAX};
use crate::identity::secret::{self, Secret};
use crate::identity::sessions::ms;
use crate::identity::{Identity, IdentityError};

const PREFIX: &str = "lho_";

/// What the browser keeps in a cookie, until it comes back.
pub struct Begun {
    pub secret: Secret,
}

/// One that came back, and cannot again.
pub(super) struct Flow {
    secret: String,
    pub(super) next: String,
    /// The provider was asked to ask for the password anew.
    pub(super) again: bool,
    /// Milliseconds since 1970.
    pub(super) begun_at: i64,
}

/// What is sent along, each fit for nothing but its purpose.
pub(super) trait Made {
    fn secret(&self) -> &str;

    fn state(&self) -> String {
        made("state", self.secret())
    }

    fn nonce(&self) -> String {
        made("nonce", self.secret())
    }

    /// Of PKCE: 64 characters of hex.
    fn verifier(&self) -> String {
        made("verifier", self.secret())
    }
}

impl Made for Begun {
    fn secret(&self) -> &str {
        self.secret.expose()
    }
}

impl Made for Flow {
    fn secret(&self) -> &str {
        &self.secret
    }
}

fn made(purpose: &str, secret: &str) -> String {
    hex::text(&Sha256::digest(format!("leasehold oidc {purpose} {secret}")))
}

impl Identity {
    /// Forgets what is too old, and of too many the oldest: whoever begins a thousand ways does not keep others from it.
    pub(super) async fn begin_flow(&self, next: &str, again: bool) -> Result<Begun, IdentityError> {
        let secret = Secret::new(PREFIX)?;
        let now = self.now_ms();
        let forget = "DELETE FROM sign_ins WHERE begun_at <= $1 OR secret IN
            (SELECT secret FROM sign_ins ORDER BY begun_at DESC LIMIT 1000000 OFFSET $2)";
        let insert = "INSERT INTO sign_ins (secret, next, again, begun_at) VALUES ($1, $2, $3, $4)";
        on_either!(&self.db, Db, |pool| {
            let query = sqlx::query(forget).bind(now - ms(FLOW_MAX)).bind(FLOWS_MAX - 1);
            query.execute(pool).await?;
            let query = sqlx::query(insert).bind(secret.hash()).bind(next);
            let query = query.bind(i64::from(again)).bind(now);
            query.execute(pool).await?.rows_affected()
        });
        Ok(Begun { secret })
    }

    /// Of several who come back with the same, one gets it.
    pub(super) async fn take_flow(&self, cookie: &str, state: &str) -> Result<Flow, OidcError> {
        if cookie.is_empty() {
            return Err(OidcError::refused("no_cookie", "this browser did not begin it"));
        }
        // By the state alone somebody's sign-in could be ended from elsewhere: both must be there.
        let is_same = secret::hash(&made("state", cookie)) == secret::hash(state);
        if !is_same {
            return Err(OidcError::refused(
                "wrong_state",
                "the state is not the one that was sent",
            ));
        }
        let take = "DELETE FROM sign_ins WHERE secret = $1 AND begun_at > $2 RETURNING next, again, begun_at";
        let oldest = self.now_ms() - ms(FLOW_MAX);
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
        taken.ok_or_else(|| OidcError::refused("spent", "it came back already, or too late"))
    }
}
