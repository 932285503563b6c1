//! One sign-in flow. The browser keeps all of it in a cookie: a random secret, from which state, nonce and verifier are
//! derived, and the start and the page to return to, signed with a key of this installation. So an unfinished flow costs
//! the store nothing, and many of them end none.
//!
//! **Invariant:** a flow opens at most one session. The store has the hashes of finished flows until these have expired.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::duration::millis;
use domain::hex;
use hmac::{Hmac, KeyInit as _, Mac as _};
use runtime::db::{Db, on_either};
use runtime::random;
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};

use super::OidcError;
use crate::identity::limits::{FLOW_MAX, NEXT_PATH_BYTES_MAX, SKEW_MAX};
use crate::identity::secret::{self, Secret};
use crate::identity::{Identity, IdentityError};

const PREFIX: &str = "lho_";

/// The key that signs flows: the same on all servers of an installation.
pub(super) struct FlowKey(SecretString);

/// A flow that begins: its redirect, and the cookie that the browser keeps until the callback.
pub struct StartedFlow {
    secret: Secret,
    pub cookie: SecretString,
}

/// A flow that has come back to the browser that began it.
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

impl FlowKey {
    /// The key in the store. The first server creates it.
    ///
    /// # Errors
    /// The store does not answer, or there are no random numbers.
    pub(super) async fn load(db: &Db) -> Result<Self, IdentityError> {
        let new = hex::text(&random::secret::<32>().map_err(|_| IdentityError::NoChance)?);
        let insert =
            "INSERT INTO settings (key, value) VALUES ('oidc_flow_key', $1) ON CONFLICT (key) DO NOTHING";
        let select = "SELECT value FROM settings WHERE key = 'oidc_flow_key'";
        let key: String = on_either!(db, Db, |pool| {
            sqlx::query(insert).bind(new).execute(pool).await?;
            sqlx::query_scalar(select).fetch_one(pool).await?
        });
        Ok(Self(key.into()))
    }

    fn mac(&self, text: &str) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.expose_secret().as_bytes()).ok()?;
        mac.update(text.as_bytes());
        Some(mac)
    }

    /// `text`, a dot, and its HMAC-SHA256. Without a key there is no signature, and no flow comes back.
    fn sign(&self, text: &str) -> SecretString {
        let mac = self.mac(text).map(|mac| mac.finalize().into_bytes());
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(mac.unwrap_or_default())).into()
    }

    /// The text without its signature; `None` if that is not ours. Compares in constant time.
    fn verified<'c>(&self, cookie: &'c str) -> Option<&'c str> {
        let (text, signature) = cookie.rsplit_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        self.mac(text)?.verify_slice(&signature).ok()?;
        Some(text)
    }
}

impl StartedFlow {
    /// `next` is the page to return to; a path that is too long for a cookie becomes the first page.
    pub(super) fn new(key: &FlowKey, next: &str, again: bool, now: i64) -> Result<Self, IdentityError> {
        let secret = Secret::new(PREFIX)?;
        let next = if next.len() <= NEXT_PATH_BYTES_MAX {
            next
        } else {
            "/"
        };
        let next = URL_SAFE_NO_PAD.encode(next);
        let text = format!("{}.{now}.{}.{next}", secret.expose(), u8::from(again));
        Ok(Self {
            secret,
            cookie: key.sign(&text),
        })
    }
}

impl Flow {
    /// The flow of this browser, if `state` belongs to it and it has not expired.
    pub(super) fn returned(key: &FlowKey, cookie: &str, state: &str, now: i64) -> Result<Self, OidcError> {
        if cookie.is_empty() {
            return Err(OidcError::refused(
                "no_cookie",
                "this browser did not start the sign-in",
            ));
        }
        let flow = key.verified(cookie).and_then(Self::parse);
        let flow = flow.ok_or_else(|| OidcError::refused("wrong_cookie", "the cookie is not ours"))?;
        // State alone would let an attacker end another user's sign-in: the cookie is required too.
        if secret::hash(&flow.state()) != secret::hash(state) {
            return Err(OidcError::refused(
                "wrong_state",
                "the state is not the one that was sent",
            ));
        }
        // Another server began it, whose clock may be ahead. A later flow would outlive the record of its end.
        let age_ms = now - flow.begun_at;
        if age_ms >= millis(FLOW_MAX) || age_ms < -millis(SKEW_MAX) {
            return Err(OidcError::refused(
                "spent",
                "the attempt has expired, or its server's clock is ahead",
            ));
        }
        Ok(flow)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let (secret, begun_at) = (parts.next()?, parts.next()?);
        let (again, next) = (parts.next()?, parts.next()?);
        Some(Self {
            secret: secret.to_owned(),
            next: String::from_utf8(URL_SAFE_NO_PAD.decode(next).ok()?).ok()?,
            again: again == "1",
            begun_at: begun_at.parse().ok()?,
        })
    }
}

impl Identity {
    /// Whether a session came from this flow: then its code is not redeemed again.
    pub(super) async fn is_finished(&self, flow: &Flow) -> Result<bool, IdentityError> {
        let select = "SELECT 1 FROM oidc_finished_flows WHERE secret_hash = $1";
        let found: Option<i32> = on_either!(&self.db, Db, |pool| {
            let query = sqlx::query_scalar(select).bind(secret::hash(&flow.secret));
            query.fetch_optional(pool).await?
        });
        Ok(found.is_some())
    }

    /// Marks the flow as finished, once its code was redeemed: only a user of the provider causes a row. Returns false
    /// if it was finished before.
    pub(super) async fn finish_flow(&self, flow: &Flow) -> Result<bool, IdentityError> {
        let insert = "INSERT INTO oidc_finished_flows (secret_hash, begun_at) VALUES ($1, $2)
            ON CONFLICT (secret_hash) DO NOTHING";
        let inserted = on_either!(&self.db, Db, |pool| {
            let query = sqlx::query(insert).bind(secret::hash(&flow.secret));
            query.bind(flow.begun_at).execute(pool).await?.rows_affected()
        });
        Ok(inserted == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(answer: Result<Flow, OidcError>) -> &'static str {
        match answer {
            Err(OidcError::Refused { why, .. }) => why,
            Ok(_) => "accepted",
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_changed_cookie_is_refused() {
        // Each part changed, another installation's signature, and no signature; the original is accepted until it
        // expires.
        let key = FlowKey("key".to_owned().into());
        let started = StartedFlow::new(&key, "/locks?prefix=a.b", false, 1_000).unwrap();
        let (cookie, state) = (started.cookie.expose_secret(), started.state());
        let flow = Flow::returned(&key, cookie, &state, 1_000).unwrap();
        assert_eq!(
            (flow.next.as_str(), flow.again, flow.begun_at),
            ("/locks?prefix=a.b", false, 1_000)
        );
        for part in 0..5 {
            let mut parts: Vec<String> = cookie.split('.').map(str::to_owned).collect();
            parts[part] = ["lho_x", "2000", "1", "Lw", "AAAA"][part].to_owned();
            let changed = parts.join(".");
            assert_eq!(
                why(Flow::returned(&key, &changed, &state, 1_000)),
                "wrong_cookie",
                "{part}"
            );
        }
        let unsigned = cookie.rsplit_once('.').unwrap().0;
        let other = FlowKey("other".to_owned().into());
        assert_eq!(why(Flow::returned(&key, unsigned, &state, 1_000)), "wrong_cookie");
        assert_eq!(why(Flow::returned(&other, cookie, &state, 1_000)), "wrong_cookie");
        let ahead = 1_000 - millis(SKEW_MAX);
        assert_eq!(why(Flow::returned(&key, cookie, &state, ahead)), "accepted");
        assert_eq!(why(Flow::returned(&key, cookie, &state, ahead - 1)), "spent");
        let end = 1_000 + millis(FLOW_MAX);
        assert_eq!(why(Flow::returned(&key, cookie, &state, end - 1)), "accepted");
        assert_eq!(why(Flow::returned(&key, cookie, &state, end)), "spent");
    }

    #[test]
    fn a_cookie_stays_within_the_limit_of_browsers() {
        // The longest path that is kept, and one that is longer: browsers drop a cookie of more than 4,096 bytes.
        let key = FlowKey("key".to_owned().into());
        for (bytes, is_kept) in [(NEXT_PATH_BYTES_MAX, true), (NEXT_PATH_BYTES_MAX + 1, false)] {
            let next = format!("/{}", "a".repeat(bytes - 1));
            let started = StartedFlow::new(&key, &next, true, i64::MAX / 2).unwrap();
            let cookie = started.cookie.expose_secret();
            assert!(cookie.len() < 3_900, "{}", cookie.len());
            let flow = Flow::returned(&key, cookie, &started.state(), i64::MAX / 2).unwrap();
            assert_eq!(flow.next == next, is_kept);
            assert!(is_kept || flow.next == "/");
        }
    }
}
