//! Requests to the provider: metadata, authorization URL, and validation of its tokens.

use std::time::Duration;

use domain::tick::Tick;
use openidconnect::core::{
    CoreAuthDisplay, CoreAuthPrompt, CoreClientAuthMethod, CoreErrorResponseType, CoreGenderClaim,
    CoreJsonWebKey, CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm, CoreProviderMetadata,
    CoreResponseType, CoreRevocableToken, CoreRevocationErrorResponse, CoreTokenIntrospectionResponse,
    CoreTokenType,
};
use openidconnect::{
    AdditionalClaims, AuthType, AuthenticationFlow, AuthorizationCode, ClaimsVerificationError, Client,
    ClientId, ClientSecret, CsrfToken, EmptyExtraTokenFields, EndpointMaybeSet, EndpointNotSet, EndpointSet,
    IdTokenClaims, IdTokenFields, IssuerUrl, Nonce, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl,
    RequestTokenError, Scope, SignatureVerificationError, StandardErrorResponse, StandardTokenResponse,
    TokenResponse as _,
};
use parking_lot::RwLock;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use super::endpoints;
use super::flow::{Flow, FlowValues as _, StartedFlow};
use super::http::{self, Http};
use super::{OidcError, OidcSetupError};
use crate::identity::limits::{
    CLAIM_VALUES_MAX, PROVIDER_CACHE_TTL, PROVIDER_KEYS_INTERVAL_MIN, PROVIDER_RETRY_PAUSE, SKEW_MAX,
};
use config::OidcConfig;
use runtime::clock::Clock;

/// Asymmetric signatures only: never `none`, never a shared secret.
pub(super) const ALGORITHMS: [CoreJwsSigningAlgorithm; 4] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// Additional claims, unparsed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Others(Map<String, Value>);

impl AdditionalClaims for Others {}

type Fields = IdTokenFields<
    Others,
    EmptyExtraTokenFields,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJwsSigningAlgorithm,
>;
type TokenReply = StandardTokenResponse<Fields, CoreTokenType>;
type Claims = IdTokenClaims<Others, CoreGenderClaim>;
type OidcClient = Client<
    Others,
    CoreAuthDisplay,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJsonWebKey,
    CoreAuthPrompt,
    StandardErrorResponse<CoreErrorResponseType>,
    TokenReply,
    CoreTokenIntrospectionResponse,
    CoreRevocableToken,
    CoreRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// The user as the provider describes them.
#[derive(Debug)]
pub(super) struct ProviderUser {
    pub(super) subject: String,
    /// Name at the provider: for display only.
    pub(super) name: String,
    /// Values of the roles claim.
    pub(super) claim_values: Vec<String>,
    /// Time of the last authentication in milliseconds since 1970, if the provider sends it.
    pub(super) authenticated_at: Option<i64>,
}

pub(super) struct Provider {
    issuer: IssuerUrl,
    client_id: ClientId,
    client_secret: RwLock<Option<ClientSecret>>,
    redirect: RedirectUrl,
    scopes: Vec<Scope>,
    claim: String,
    http: Http,
    clock: Clock,
    cache: Mutex<ProviderCache>,
}

/// Cached metadata, or the time of the last failed request.
#[derive(Default)]
struct ProviderCache {
    metadata: Option<(CoreProviderMetadata, Tick)>,
    away: Option<(String, Tick)>,
    /// Last reload because of an unknown key.
    asked_for_key: Option<Tick>,
}

impl Provider {
    pub(super) fn new(config: &OidcConfig, home: &str, clock: Clock) -> Result<Self, OidcSetupError> {
        Ok(Self {
            issuer: IssuerUrl::new(config.issuer.clone())
                .map_err(|error| OidcSetupError::from_error("issuer", &error))?,
            client_id: ClientId::new(config.client_id.clone()),
            client_secret: RwLock::new(config.client_secret.as_ref().map(client_secret)),
            redirect: RedirectUrl::new(format!("{home}/sign-in/oidc/callback"))
                .map_err(|error| OidcSetupError::from_error("issuer", &error))?,
            scopes: config.scopes.iter().cloned().map(Scope::new).collect(),
            claim: config.roles_claim.clone(),
            http: http::client(config)?,
            clock,
            cache: Mutex::default(),
        })
    }

    /// Returns whether the secret changed.
    pub(super) fn renew_secret(&self, secret: Option<&SecretString>) -> bool {
        let secret = secret.map(client_secret);
        let mut held = self.client_secret.write();
        let text = |secret: &Option<ClientSecret>| secret.as_ref().map(|secret| secret.secret().clone());
        let is_another = text(&held) != text(&secret);
        *held = secret;
        is_another
    }

    /// Metadata with keys, cached. While the provider is down, requests fail immediately instead of contacting it
    /// each time.
    pub(super) async fn metadata(&self) -> Result<CoreProviderMetadata, OidcError> {
        let mut cache = self.cache.lock().await;
        match &cache.metadata {
            Some((metadata, at)) if self.is_within(*at, PROVIDER_CACHE_TTL) => Ok(metadata.clone()),
            _ => self.discover(&mut cache).await,
        }
    }

    /// Reloaded metadata, for a key that is not known yet. Limited in rate, so that forged keys cannot cause
    /// requests.
    async fn metadata_with_new_keys(&self) -> Result<CoreProviderMetadata, OidcError> {
        let mut cache = self.cache.lock().await;
        let is_recently_reloaded = cache
            .asked_for_key
            .is_some_and(|at| self.is_within(at, PROVIDER_KEYS_INTERVAL_MIN));
        match &cache.metadata {
            Some((metadata, _)) if is_recently_reloaded => Ok(metadata.clone()),
            _ => {
                cache.asked_for_key = Some(self.clock.tick());
                self.discover(&mut cache).await
            }
        }
    }

    fn is_within(&self, at: Tick, max: Duration) -> bool {
        u128::try_from(self.clock.tick().since(at)).is_ok_and(|ms| ms < max.as_millis())
    }

    async fn discover(&self, cache: &mut ProviderCache) -> Result<CoreProviderMetadata, OidcError> {
        if let Some((why, at)) = &cache.away
            && self.is_within(*at, PROVIDER_RETRY_PAUSE)
        {
            return Err(OidcError::Down(why.clone()));
        }
        let found = CoreProviderMetadata::discover_async(self.issuer.clone(), &self.http).await;
        let found = found.map_err(|error| with_causes(&error));
        match found.and_then(|metadata| endpoints::require_https(&metadata).map(|()| metadata)) {
            Ok(metadata) => {
                cache.away = None;
                cache.metadata = Some((metadata.clone(), self.clock.tick()));
                Ok(metadata)
            }
            Err(why) => {
                tracing::warn!("the request to the identity provider failed: {why}");
                cache.away = Some((why.clone(), self.clock.tick()));
                Err(OidcError::Down(why))
            }
        }
    }

    pub(super) fn authorize(
        &self,
        metadata: &CoreProviderMetadata,
        begun: &StartedFlow,
        again: bool,
    ) -> Result<String, OidcError> {
        let client = self.client(metadata);
        let (state, nonce) = (begun.state(), begun.nonce());
        let verifier = PkceCodeVerifier::new(begun.verifier());
        let mut request = client
            .authorize_url(
                AuthenticationFlow::<CoreResponseType>::AuthorizationCode,
                move || CsrfToken::new(state),
                move || Nonce::new(nonce),
            )
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier))
            .add_scopes(self.scopes.iter().cloned());
        if again {
            request = request
                .add_prompt(CoreAuthPrompt::Login)
                .set_max_age(Duration::ZERO);
        }
        let (url, _, _) = request.url();
        Ok(url.into())
    }

    /// Redeems a code and validates the ID token.
    pub(super) async fn redeem(&self, code: String, flow: &Flow) -> Result<ProviderUser, OidcError> {
        let metadata = self.metadata().await?;
        let client = self.client(&metadata);
        let reply = client
            .exchange_code(AuthorizationCode::new(code))
            .map_err(|error| OidcError::Down(with_causes(&error)))?
            .set_pkce_verifier(PkceCodeVerifier::new(flow.verifier()))
            .request_async(&self.http)
            .await
            .map_err(|error| match error {
                RequestTokenError::ServerResponse(refusal) => OidcError::refused("wrong_code", refusal),
                RequestTokenError::Request(error) => OidcError::Down(with_causes(&error)),
                error => OidcError::refused("unreadable", with_causes(&error)),
            })?;
        let mut checked = self.validate_token(&client, &reply, flow);
        if matches!(&checked, Err(TokenRejection::NoKey)) {
            let metadata = self.metadata_with_new_keys().await?;
            checked = self.validate_token(&self.client(&metadata), &reply, flow);
        }
        let claims = checked.map_err(|rejection| match rejection {
            TokenRejection::NoKey => {
                OidcError::refused("unknown_key", "the provider has no key with this id")
            }
            TokenRejection::Other(why, detail) => OidcError::refused(why, detail),
        })?;
        Ok(self.provider_user(&claims, flow))
    }

    fn client(&self, metadata: &CoreProviderMetadata) -> OidcClient {
        let secret = self.client_secret.read().clone();
        let has_secret = secret.is_some();
        let client = OidcClient::from_provider_metadata(metadata.clone(), self.client_id.clone(), secret)
            .set_redirect_uri(self.redirect.clone());
        let auth_methods = metadata.token_endpoint_auth_methods_supported();
        // The default authentication method of OAuth 2.0 is the header.
        let by_header = auth_methods
            .is_none_or(|auth_methods| auth_methods.contains(&CoreClientAuthMethod::ClientSecretBasic));
        client.set_auth_type(if by_header && has_secret {
            AuthType::BasicAuth
        } else {
            AuthType::RequestBody
        })
    }

    fn validate_token(
        &self,
        client: &OidcClient,
        reply: &TokenReply,
        flow: &Flow,
    ) -> Result<Claims, TokenRejection> {
        let now = self.clock.now().wall;
        let token = reply
            .id_token()
            .ok_or_else(|| TokenRejection::Other("no_id_token", "there is no ID token".to_owned()))?;
        let verifier = client
            .id_token_verifier()
            .set_allowed_algs(ALGORITHMS)
            .set_time_fn(move || now - SKEW_MAX)
            .set_issue_time_verifier_fn(move |at| match at > now + SKEW_MAX {
                true => Err(FUTURE.to_owned()),
                false => Ok(()),
            });
        let nonce = Nonce::new(flow.nonce());
        let claims = token.claims(&verifier, &nonce).map_err(TokenRejection::from)?;
        let others = &claims.additional_claims().0;
        let not_before = others.get("nbf").and_then(Value::as_i64);
        if not_before.is_some_and(|at| at > (now + SKEW_MAX).timestamp()) {
            return Err(TokenRejection::Other(
                "not_yet_valid",
                format!("not before {not_before:?}"),
            ));
        }
        if claims.subject().as_str().is_empty() {
            return Err(TokenRejection::Other(
                "no_subject",
                "the subject is empty".to_owned(),
            ));
        }
        let is_for_other_client = claims
            .authorized_party()
            .is_some_and(|party| **party != *self.client_id);
        if is_for_other_client {
            return Err(TokenRejection::Other(
                "wrong_audience",
                "the ID token is for another client".to_owned(),
            ));
        }
        let proved_at = claims.auth_time();
        if proved_at.is_some_and(|at| at > now + SKEW_MAX) {
            return Err(TokenRejection::Other(
                "not_yet_valid",
                "the time of authentication is in the future".to_owned(),
            ));
        }
        let begun_s = flow.begun_at / 1_000 - i64::try_from(SKEW_MAX.as_secs()).unwrap_or(0);
        if flow.again && proved_at.is_none_or(|at| at.timestamp() < begun_s) {
            return Err(TokenRejection::Other(
                "not_again",
                "the provider did not ask for authentication again".to_owned(),
            ));
        }
        Ok(claims.clone())
    }

    fn provider_user(&self, claims: &Claims, flow: &Flow) -> ProviderUser {
        let others = &claims.additional_claims().0;
        let claim_values = match others.get(&self.claim) {
            Some(Value::String(role)) => vec![role.clone()],
            Some(Value::Array(claim_values)) => {
                let claim_values = claim_values.iter().filter_map(Value::as_str);
                claim_values.take(CLAIM_VALUES_MAX).map(str::to_owned).collect()
            }
            _ => Vec::new(),
        };
        let name = claims.preferred_username().map(|name| name.as_str());
        let name = name.or_else(|| claims.email().map(|email| email.as_str()));
        let now = self.clock.now().wall.timestamp_millis();
        let proved_at = claims.auth_time().map(|at| at.timestamp_millis().min(now));
        ProviderUser {
            subject: claims.subject().to_string(),
            name: name.unwrap_or(claims.subject().as_str()).to_owned(),
            claim_values,
            // The claim has whole seconds: an authentication required by this flow cannot be older than the flow.
            authenticated_at: proved_at.map(|at| if flow.again { at.max(flow.begun_at) } else { at }),
        }
    }
}

fn client_secret(secret: &SecretString) -> ClientSecret {
    ClientSecret::new(secret.expose_secret().to_owned())
}

const FUTURE: &str = "the ID token was issued in the future";

/// Why an ID token is rejected.
enum TokenRejection {
    NoKey,
    Other(&'static str, String),
}

impl From<ClaimsVerificationError> for TokenRejection {
    fn from(error: ClaimsVerificationError) -> Self {
        use ClaimsVerificationError as E;
        use SignatureVerificationError as S;
        let why = match &error {
            E::SignatureVerification(S::NoMatchingKey) => return Self::NoKey,
            E::SignatureVerification(S::DisallowedAlg(_) | S::UnsupportedAlg(_) | S::NoSignature) => {
                "wrong_algorithm"
            }
            E::SignatureVerification(_) => "wrong_signature",
            E::Expired(why) if why == FUTURE => "not_yet_valid",
            E::Expired(_) => "expired",
            E::InvalidAudience(_) => "wrong_audience",
            E::InvalidIssuer(_) => "wrong_issuer",
            E::InvalidNonce(_) => "wrong_nonce",
            _ => "unfit",
        };
        Self::Other(why, error.to_string())
    }
}

/// An error with its causes.
pub(super) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
