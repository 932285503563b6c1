//! Signing in through an identity provider: OpenID Connect, code with PKCE.
//!
//! Owns the way there and back. Who somebody is are issuer and subject, never an e-mail address or a name; what they may do
//! is what the claim says at each sign-in. Sessions are the same as for people with a password.
//!
//! **Invariants:** each way there is good once, for the browser that began it, for ten minutes; an answer counts only when
//! everything about it was checked, and every one that does not is in the record.

mod endpoints;
pub mod examine;
mod flow;
mod http;
mod person;
mod provider;

use std::sync::Arc;

use domain::audit::Action;
use serde_json::json;
use thiserror::Error;

pub use self::flow::Begun;
use self::provider::Provider;
use super::Identity;
use super::error::IdentityError;
use super::hashing_queue::whole_seconds;
use super::sessions::SignedIn;
use super::throttle::Key;
use super::who::Who;
use crate::audit::{Entry, Origin};
use crate::config::OidcConfig;

/// The configured provider. Nothing is asked of it before somebody signs in.
pub struct Oidc {
    identity: Arc<Identity>,
    config: OidcConfig,
    provider: Provider,
}

/// What the browser brings back.
#[derive(Debug, Default)]
pub struct Returned {
    pub code: Option<String>,
    pub state: Option<String>,
    /// The provider's own refusal.
    pub error: Option<String>,
    /// What the cookie holds that was set on the way there.
    pub cookie: Option<String>,
}

#[derive(Debug, Error)]
pub enum OidcError {
    /// It does not answer, or not as a provider does. The text is for the log.
    #[error("the identity provider cannot be asked: {0}")]
    Down(String),
    /// `why` is for the record; the detail for the log.
    #[error("the identity provider's answer was refused: {why}: {detail}")]
    Refused { why: &'static str, detail: String },
    /// From one address, without coming back as somebody.
    #[error("too many ways to the identity provider were begun from one address; the next one in {wait_s} s")]
    TooOften { wait_s: u64 },
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

impl OidcError {
    fn refused(why: &'static str, detail: impl ToString) -> Self {
        Self::Refused {
            why,
            detail: detail.to_string(),
        }
    }
}

impl From<sqlx::Error> for OidcError {
    fn from(error: sqlx::Error) -> Self {
        Self::Identity(error.into())
    }
}

/// Why the provider could not be set up.
#[derive(Debug, Error)]
#[error("oidc.{field}: {why}")]
pub struct OidcSetupError {
    field: &'static str,
    why: String,
}

impl OidcSetupError {
    fn of(field: &'static str, error: &dyn std::error::Error) -> Self {
        Self {
            field,
            why: error.to_string(),
        }
    }
}

impl Oidc {
    /// `home` is where people reach the console, without a slash at its end.
    ///
    /// # Errors
    /// The authority's file holds none, or a URL is none.
    pub fn new(identity: Arc<Identity>, config: OidcConfig, home: &str) -> Result<Self, OidcSetupError> {
        Ok(Self {
            provider: Provider::new(&config, home, identity.clock.clone())?,
            identity,
            config,
        })
    }

    /// What people call it.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// Uses the secret of this configuration from now on, if it is another one for the same client. Answers whether it is.
    pub fn renew_secret(&self, config: &OidcConfig) -> bool {
        let is_same_client = config.issuer == self.config.issuer && config.client_id == self.config.client_id;
        is_same_client && self.provider.renew_secret(config.client_secret.as_ref())
    }

    /// Where to send a browser, and what it must bring back. `again` asks the provider to ask for the password anew.
    ///
    /// # Errors
    /// The provider or the store does not answer; too many began from this address.
    pub async fn begin(
        &self,
        next: &str,
        again: bool,
        origin: &Origin,
    ) -> Result<(Begun, String), OidcError> {
        self.count(origin)?;
        // First, so that nothing is kept for a provider that is away.
        let metadata = self.provider.metadata().await?;
        let begun = self.identity.begin_flow(next, again).await?;
        let url = self.provider.authorize(&metadata, &begun, again)?;
        Ok((begun, url))
    }

    /// A session for whoever the provider says it is, and where they were going. A refusal is in the record.
    ///
    /// # Errors
    /// See [`OidcError`].
    pub async fn finish(&self, returned: Returned, origin: &Origin) -> Result<(SignedIn, String), OidcError> {
        // Counted before anything is read. A success also removes the count of its beginning.
        self.count(origin)?;
        let finished = self.try_finish(returned, origin).await;
        if finished.is_ok() {
            let key = Key::Provider(origin.network());
            self.identity.throttle.forgive(&key);
            self.identity.throttle.forgive(&key);
        }
        if let Err(OidcError::Refused { why, detail }) = &finished {
            tracing::warn!("a sign-in through the identity provider was refused: {why}: {detail}");
            let who = Who::anonymous(origin.clone());
            let entry = Entry {
                after: Some(json!({"way": "oidc", "issuer": self.config.issuer, "why": why})),
                ..Entry::new(Action::Login, "refused", who.actor(None), origin.clone())
            };
            self.identity.audit.append_anonymous(entry, why).await;
        }
        finished
    }

    /// Each sign-in that is begun costs a row, and each answer a request to the provider.
    fn count(&self, origin: &Origin) -> Result<(), OidcError> {
        let now = self.identity.clock.tick();
        let counted = self.identity.throttle.count(Key::Provider(origin.network()), now);
        counted.map_err(|wait| OidcError::TooOften {
            wait_s: whole_seconds(wait),
        })
    }

    async fn try_finish(&self, returned: Returned, origin: &Origin) -> Result<(SignedIn, String), OidcError> {
        let state = returned.state.unwrap_or_default();
        let cookie = returned.cookie.unwrap_or_default();
        let flow = self.identity.take_flow(&cookie, &state).await?;
        if let Some(error) = returned.error {
            return Err(OidcError::refused("provider_refused", error.escape_debug()));
        }
        let code = returned.code.filter(|code| !code.is_empty());
        let code = code.ok_or_else(|| OidcError::refused("no_code", "there is no code"))?;
        let known = self.provider.redeem(code, &flow).await?;
        let person = self
            .identity
            .person_of_provider(&self.config, &known, origin)
            .await?;
        let session = self
            .identity
            .begin_session_at(person, "oidc", (known.authenticated_at, None), origin)
            .await?;
        Ok((session, flow.next))
    }
}
