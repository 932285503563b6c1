//! Sign-in through an identity provider: OpenID Connect, authorization code with PKCE.
//!
//! Owns the redirect to the provider and the callback. A user is identified by issuer and subject, never by e-mail
//! address or name; permissions come from the roles claim at each sign-in. Sessions are the same as after a password
//! sign-in.
//!
//! **Invariants:** each flow opens at most one session, for the browser that began it, within ten minutes; a callback is accepted
//! only after every check, and every rejected one is in the audit log.

pub mod check;
mod endpoints;
mod flow;
mod http;
mod provider;
mod user;

use std::sync::Arc;

use domain::audit::Action;
use serde_json::json;
use thiserror::Error;
use tokio::sync::OnceCell;

pub use self::flow::StartedFlow;
use self::flow::{Flow, FlowKey};
use self::provider::Provider;
use super::Identity;
use super::error::IdentityError;
use super::hashing_queue::whole_seconds;
use super::principal::Principal;
use super::session_start::Proof;
use super::sessions::SignedIn;
use super::sign_in_throttle::{Attempts, Key};
use crate::audit::{Entry, Origin};
use config::OidcConfig;

/// The configured provider. Not contacted before the first sign-in.
pub struct Oidc {
    identity: Arc<Identity>,
    config: OidcConfig,
    provider: Provider,
    flow_key: OnceCell<FlowKey>,
}

/// Parameters of the callback.
#[derive(Debug, Default)]
pub struct Returned {
    pub code: Option<String>,
    pub state: Option<String>,
    /// The provider's error code.
    pub error: Option<String>,
    /// Value of the cookie that was set at the start of the flow.
    pub cookie: Option<String>,
}

#[derive(Debug, Error)]
pub enum OidcError {
    /// The provider does not answer, or its answer is unusable. The text is for the log.
    #[error("the request to the identity provider failed: {0}")]
    Down(String),
    /// `why` is for the audit log, `detail` for the server log.
    #[error("the identity provider's answer was rejected: {why}: {detail}")]
    Refused { why: &'static str, detail: String },
    /// Too many unfinished sign-ins from one address.
    #[error("too many sign-ins through the identity provider from one address; try again in {wait_s} s")]
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

/// Why the provider's configuration is unusable.
#[derive(Debug, Error)]
#[error("oidc.{field}: {why}")]
pub struct OidcSetupError {
    field: &'static str,
    why: String,
}

impl OidcSetupError {
    fn from_error(field: &'static str, error: &dyn std::error::Error) -> Self {
        Self {
            field,
            why: error.to_string(),
        }
    }
}

impl Oidc {
    /// `home` is the public URL of the console, without a trailing slash.
    ///
    /// # Errors
    /// The CA file has no certificate, or a URL is invalid.
    pub fn new(identity: Arc<Identity>, config: OidcConfig, home: &str) -> Result<Self, OidcSetupError> {
        Ok(Self {
            provider: Provider::new(&config, home, identity.clock.clone())?,
            identity,
            config,
            flow_key: OnceCell::new(),
        })
    }

    /// Display name of the provider.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// Replaces the client secret after a configuration reload. Returns whether it changed.
    pub fn renew_secret(&self, config: &OidcConfig) -> bool {
        let is_same_client = config.issuer == self.config.issuer && config.client_id == self.config.client_id;
        is_same_client && self.provider.renew_secret(config.client_secret.as_ref())
    }

    /// Starts a flow: the redirect URL and the cookie. `again` requires the provider to ask for the password again.
    ///
    /// # Errors
    /// The provider or the store does not answer; too many flows from this address.
    pub async fn begin(
        &self,
        next: &str,
        again: bool,
        origin: &Origin,
    ) -> Result<(StartedFlow, String), OidcError> {
        self.count(origin)?;
        let metadata = self.provider.metadata().await?;
        let key = self.flow_key().await?;
        let begun = StartedFlow::new(key, next, again, self.identity.now_ms())?;
        let url = self.provider.authorize(&metadata, &begun, again)?;
        Ok((begun, url))
    }

    /// Finishes a flow: a session for the provider's user, and the path to return to. A refusal is recorded in the
    /// audit log.
    ///
    /// # Errors
    /// See [`OidcError`].
    pub async fn finish(&self, returned: Returned, origin: &Origin) -> Result<(SignedIn, String), OidcError> {
        // Counted before any read. A success also removes the count of its start.
        self.count(origin)?;
        let finished = self.try_finish(returned, origin).await;
        if finished.is_ok() {
            let keys = Key::of_source(origin.network(), Attempts::Provider);
            self.identity.throttle.refund(&keys);
            self.identity.throttle.refund(&keys);
        }
        if let Err(OidcError::Refused { why, detail }) = &finished {
            tracing::warn!("a sign-in through the identity provider was rejected: {why}: {detail}");
            let who = Principal::anonymous(origin.clone());
            let entry = Entry {
                after: Some(json!({"way": "oidc", "issuer": self.config.issuer, "why": why})),
                ..Entry::new(Action::Login, "refused", who.actor(None), origin.clone())
            };
            self.identity.audit.append_anonymous(entry, why).await;
        }
        finished
    }

    async fn flow_key(&self) -> Result<&FlowKey, IdentityError> {
        self.flow_key
            .get_or_try_init(|| FlowKey::load(&self.identity.db))
            .await
    }

    /// Each callback costs a request to the provider.
    fn count(&self, origin: &Origin) -> Result<(), OidcError> {
        let now = self.identity.clock.tick();
        let keys = Key::of_source(origin.network(), Attempts::Provider);
        let counted = self.identity.throttle.count(keys, now);
        counted.map_err(|wait| OidcError::TooOften {
            wait_s: whole_seconds(wait),
        })
    }

    async fn try_finish(&self, returned: Returned, origin: &Origin) -> Result<(SignedIn, String), OidcError> {
        let state = returned.state.unwrap_or_default();
        let cookie = returned.cookie.unwrap_or_default();
        let flow = Flow::returned(self.flow_key().await?, &cookie, &state, self.identity.now_ms())?;
        let spent = || OidcError::refused("spent", "the attempt was used already");
        if self.identity.is_finished(&flow).await? {
            return Err(spent());
        }
        if let Some(error) = returned.error {
            return Err(OidcError::refused("provider_refused", error.escape_debug()));
        }
        let code = returned.code.filter(|code| !code.is_empty());
        let code = code.ok_or_else(|| OidcError::refused("no_code", "there is no code"))?;
        let known = self.provider.redeem(code, &flow).await?;
        if !self.identity.finish_flow(&flow).await? {
            return Err(spent());
        }
        let user = self
            .identity
            .user_of_provider(&self.config, &known, origin)
            .await?;
        let session = self
            .identity
            .begin_session(user, Proof::Provider(known.authenticated_at), origin)
            .await?;
        let session =
            session.ok_or_else(|| OidcError::refused("disabled", "this user was disabled meanwhile"))?;
        Ok((session, flow.next))
    }
}
