//! Endpoints of the discovery document: HTTPS is required, except on loopback.

use openidconnect::core::CoreProviderMetadata;
use url::{Host, Url};

/// # Errors
/// Names the endpoint that is neither HTTPS nor on loopback.
pub(super) fn require_https(metadata: &CoreProviderMetadata) -> Result<(), String> {
    let token = metadata.token_endpoint().map(|endpoint| endpoint.url());
    let user_info = metadata.userinfo_endpoint().map(|endpoint| endpoint.url());
    let endpoints = [
        (
            "authorization_endpoint",
            Some(metadata.authorization_endpoint().url()),
        ),
        ("token_endpoint", token),
        ("userinfo_endpoint", user_info),
        ("jwks_uri", Some(metadata.jwks_uri().url())),
    ];
    let plain = endpoints
        .into_iter()
        .find_map(|(name, url)| url.filter(|url| !is_private_way(url)).map(|url| (name, url)));
    match plain {
        None => Ok(()),
        Some((name, url)) => Err(format!(
            "its {name} is {}:, not https: codes, secrets and keys could be read or replaced on the way; set the provider \
             to name https addresses",
            url.scheme()
        )),
    }
}

fn is_private_way(url: &Url) -> bool {
    let is_loopback = match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    };
    url.scheme() == "https" || (url.scheme() == "http" && is_loopback)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn provider(field: &str, url: &str) -> CoreProviderMetadata {
        let mut document = json!({
            "issuer": "https://id.example.com", "authorization_endpoint": "https://id.example.com/authorize",
            "token_endpoint": "https://id.example.com/token", "jwks_uri": "https://id.example.com/keys",
            "response_types_supported": ["code"], "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        });
        document[field] = json!(url);
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn endpoints_in_clear_are_refused_beyond_loopback() {
        // Each endpoint with plain HTTP, another scheme, and loopback.
        for field in [
            "authorization_endpoint",
            "token_endpoint",
            "userinfo_endpoint",
            "jwks_uri",
        ] {
            assert_eq!(require_https(&provider(field, "https://other.example/x")), Ok(()));
            assert_eq!(require_https(&provider(field, "http://127.0.0.1:8080/x")), Ok(()));
            assert_eq!(require_https(&provider(field, "http://localhost/x")), Ok(()));
            for url in [
                "http://id.example.com/x",
                "http://10.0.0.1/x",
                "ftp://127.0.0.1/x",
            ] {
                let why = require_https(&provider(field, url)).unwrap_err();
                assert!(why.contains(field) && why.contains("not https"), "{why}");
            }
        }
    }
}
