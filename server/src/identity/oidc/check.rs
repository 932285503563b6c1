//! Check of the provider without a sign-in, for `leasehold doctor`. Uses the same client and checks as a sign-in.

use chrono::{DateTime, Utc};
use openidconnect::core::{CoreJsonWebKey, CoreJwsSigningAlgorithm, CoreProviderMetadata};
use openidconnect::{
    DiscoveryError, IssuerUrl, JsonWebKey as _, JsonWebKeyUse as _, JwsSigningAlgorithm as _,
};
use serde_json::Value;

use super::provider::{ALGORITHMS, with_causes};
use super::{endpoints, http};
use crate::bounded_body;
use crate::identity::limits::PROVIDER_ANSWER_BYTES_MAX;
use config::OidcConfig;

/// Result of a successful check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderInspection {
    /// Number of keys usable for ID tokens.
    pub keys: usize,
    /// The provider's clock from the `Date` header, in whole seconds.
    pub now: Option<DateTime<Utc>>,
}

/// The problem and its remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderFault {
    pub why: String,
    pub remedy: String,
}

/// # Errors
/// Sign-in is impossible; see [`ProviderFault`].
pub async fn inspect(config: &OidcConfig) -> Result<ProviderInspection, ProviderFault> {
    let http = http::client(config).map_err(|error| ProviderFault {
        why: error.to_string(),
        remedy: "write the authority's certificate as PEM into the file of oidc.ca_file".to_owned(),
    })?;
    let document = format!(
        "{}/.well-known/openid-configuration",
        config.issuer.trim_end_matches('/')
    );
    let mut response = http
        .0
        .get(&document)
        .send()
        .await
        .map_err(|error| unreachable_fault(&document, &error))?;
    let date = response.headers().get(reqwest::header::DATE);
    let date = date.and_then(|date| DateTime::parse_from_rfc2822(date.to_str().ok()?).ok());
    let status = response.status();
    if !status.is_success() {
        return Err(ProviderFault {
            why: format!("{document} answers {status}"),
            remedy: format!(
                "set oidc.issuer to what the provider calls its issuer; then: curl -f {document}"
            ),
        });
    }
    let body = bounded_body::read(&mut response, PROVIDER_ANSWER_BYTES_MAX)
        .await
        .map_err(|error| ProviderFault {
            why: format!("{document} cannot be read: {error}"),
            remedy: format!(
                "set oidc.issuer to what the provider calls its issuer; then: curl -f {document}"
            ),
        })?;
    let document_json: Value = serde_json::from_slice(&body).unwrap_or_default();
    if let Some(actual) = document_json["issuer"]
        .as_str()
        .filter(|actual| *actual != config.issuer)
    {
        return Err(ProviderFault {
            why: format!(
                "its issuer is {actual}, not {}: every sign-in would be rejected",
                config.issuer
            ),
            remedy: format!("set issuer = {actual:?} in [oidc], exactly as written here"),
        });
    }
    let issuer = IssuerUrl::new(config.issuer.clone()).map_err(|error| ProviderFault {
        why: error.to_string(),
        remedy: "set oidc.issuer to the provider's address".to_owned(),
    })?;
    let metadata = CoreProviderMetadata::discover_async(issuer, &http).await;
    let metadata = metadata.map_err(|error| discovery_fault(&document, &document_json, &error))?;
    endpoints::require_https(&metadata).map_err(|why| ProviderFault {
        why,
        remedy: format!("curl -f {document} # its endpoints must be https addresses"),
    })?;
    let keys = metadata.jwks().keys().iter().filter(|key| may_sign(key)).count();
    if keys == 0 {
        return Err(ProviderFault {
            why: "none of its keys has a supported signature algorithm".to_owned(),
            remedy: "give the client at the provider a signature by RS256, PS256, ES256 or EdDSA".to_owned(),
        });
    }
    Ok(ProviderInspection {
        keys,
        now: date.map(|date| date.with_timezone(&Utc)),
    })
}

fn may_sign(key: &CoreJsonWebKey) -> bool {
    let is_for_signing = key.key_use().is_none_or(|purpose| purpose.allows_signature());
    let has_key_type =
        |algorithm: &CoreJwsSigningAlgorithm| algorithm.key_type().as_ref() == Some(key.key_type());
    is_for_signing && ALGORITHMS.iter().any(has_key_type)
}

fn unreachable_fault(document: &str, error: &reqwest::Error) -> ProviderFault {
    let why = with_causes(error);
    let remedy = match why.contains("certificate") {
        true => "set oidc.ca_file to the authority that signed its certificate, or renew that".to_owned(),
        false => {
            format!(
                "curl -f {document} # from this machine: check that it runs, that its name resolves and that no firewall blocks it"
            )
        }
    };
    ProviderFault { why, remedy }
}

fn discovery_fault<E: std::error::Error + 'static>(
    document: &str,
    document_json: &Value,
    error: &DiscoveryError<E>,
) -> ProviderFault {
    let keys = document_json["jwks_uri"].as_str();
    ProviderFault {
        why: format!("its discovery document is invalid: {}", with_causes(error)),
        remedy: match keys {
            Some(keys) => {
                format!("curl -f {keys} # must answer with keys, and {document} must have all fields")
            }
            None => format!(
                "curl -f {document} # must be a discovery document; check that oidc.issuer is the right address"
            ),
        },
    }
}
