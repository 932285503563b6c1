//! A look at the provider without signing anybody in: for `leasehold doctor`. It is asked by the client and the checks that a
//! sign-in goes through.

use chrono::{DateTime, Utc};
use openidconnect::core::{CoreJsonWebKey, CoreJwsSigningAlgorithm, CoreProviderMetadata};
use openidconnect::{
    DiscoveryError, IssuerUrl, JsonWebKey as _, JsonWebKeyUse as _, JwsSigningAlgorithm as _,
};
use serde_json::Value;

use super::provider::{ALGORITHMS, whole};
use super::{endpoints, http};
use crate::config::OidcConfig;

/// What the provider says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examined {
    /// Of its keys, those that could sign for us.
    pub keys: usize,
    /// Its own clock, by the header of its answer: whole seconds.
    pub now: Option<DateTime<Utc>>,
}

/// What is wrong, and the line that mends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit {
    pub why: String,
    pub mend: String,
}

/// # Errors
/// Nobody could sign in; see [`Unfit`].
pub async fn examine(config: &OidcConfig) -> Result<Examined, Unfit> {
    let http = http::client(config).map_err(|error| Unfit {
        why: error.to_string(),
        mend: "write the authority's certificate as PEM into the file of oidc.ca_file".to_owned(),
    })?;
    let document = format!(
        "{}/.well-known/openid-configuration",
        config.issuer.trim_end_matches('/')
    );
    let mut answer = http
        .0
        .get(&document)
        .send()
        .await
        .map_err(|error| unreached(&document, &error))?;
    let date = answer.headers().get(reqwest::header::DATE);
    let date = date.and_then(|date| DateTime::parse_from_rfc2822(date.to_str().ok()?).ok());
    let status = answer.status();
    if !status.is_success() {
        return Err(Unfit {
            why: format!("{document} answers {status}"),
            mend: format!("set oidc.issuer to what the provider calls its issuer; then: curl -f {document}"),
        });
    }
    let body = http::bounded(&mut answer).await.map_err(|error| Unfit {
        why: format!("{document} cannot be read: {error}"),
        mend: format!("set oidc.issuer to what the provider calls its issuer; then: curl -f {document}"),
    })?;
    let said: Value = serde_json::from_slice(&body).unwrap_or_default();
    if let Some(own) = said["issuer"].as_str().filter(|own| *own != config.issuer) {
        return Err(Unfit {
            why: format!(
                "it says that its issuer is {own}, not {}: no sign-in would count",
                config.issuer
            ),
            mend: format!("issuer = {own:?} in [oidc], letter by letter"),
        });
    }
    let issuer = IssuerUrl::new(config.issuer.clone()).map_err(|error| Unfit {
        why: error.to_string(),
        mend: "set oidc.issuer to the provider's address".to_owned(),
    })?;
    let metadata = CoreProviderMetadata::discover_async(issuer, &http).await;
    let metadata = metadata.map_err(|error| unread(&document, &said, &error))?;
    endpoints::require_https(&metadata).map_err(|why| Unfit {
        why,
        mend: format!("curl -f {document} # its endpoints must be https addresses"),
    })?;
    let keys = metadata.jwks().keys().iter().filter(|key| may_sign(key)).count();
    if keys == 0 {
        return Err(Unfit {
            why: "none of its keys could sign for us".to_owned(),
            mend: "give the client at the provider a signature by RS256, PS256, ES256 or EdDSA".to_owned(),
        });
    }
    Ok(Examined {
        keys,
        now: date.map(|date| date.with_timezone(&Utc)),
    })
}

fn may_sign(key: &CoreJsonWebKey) -> bool {
    let is_for_signing = key.key_use().is_none_or(|purpose| purpose.allows_signature());
    let is_of_a_kind =
        |algorithm: &CoreJwsSigningAlgorithm| algorithm.key_type().as_ref() == Some(key.key_type());
    is_for_signing && ALGORITHMS.iter().any(is_of_a_kind)
}

fn unreached(document: &str, error: &reqwest::Error) -> Unfit {
    let why = whole(error);
    let mend = match why.contains("certificate") {
        true => "set oidc.ca_file to the authority that signed its certificate, or renew that".to_owned(),
        false => {
            format!("curl -f {document} # from this machine: is it up, is its name known, is it let through?")
        }
    };
    Unfit { why, mend }
}

fn unread<E: std::error::Error + 'static>(document: &str, said: &Value, error: &DiscoveryError<E>) -> Unfit {
    let keys = said["jwks_uri"].as_str();
    Unfit {
        why: format!("it does not describe itself as a provider does: {}", whole(error)),
        mend: match keys {
            Some(keys) => format!("curl -f {keys} # its keys must be there, and {document} whole"),
            None => format!(
                "curl -f {document} # must be a discovery document; is oidc.issuer the right address?"
            ),
        },
    }
}
