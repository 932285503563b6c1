//! Validated configuration of one Consul backend: address, token, TLS, prefixes. Reads the TLS
//! files once. Opens no connection, so an unreachable agent is no error here.

use std::path::Path;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use crate::BackendError;
use crate::error::misconfigured;
use config::BackendConfig;
use config::consul::ConsulConfig;
use config::tls::TlsConfig;

pub(super) const TOKEN_HEADER: HeaderName = HeaderName::from_static("x-consul-token");

pub(super) struct ConsulSettings {
    /// Without credentials: it reaches pages.
    pub(super) url: Url,
    pub(super) timeout: Duration,
    pub(super) poll_interval: Duration,
    /// No prefix is part of another, so that no key is listed twice.
    pub(super) prefixes: Vec<String>,
    /// `dc` and `ns` of each request.
    pub(super) scope: Vec<(&'static str, String)>,
}

impl ConsulSettings {
    pub(super) fn check(config: &BackendConfig, consul: &ConsulConfig) -> Result<Self, BackendError> {
        let url = Url::parse(&consul.url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let Some(url) = url else {
            return Err(misconfigured(
                "`url` is neither http://host nor https://host",
                "Write it as http://host:8500 or https://host:8501.",
            ));
        };
        if consul.prefixes.is_empty() {
            return Err(misconfigured(
                "it has no prefixes",
                "Set `prefixes`, e.g. [\"locks/\"].",
            ));
        }
        if url.scheme() == "http" && config.tls.is_configured() {
            return Err(misconfigured(
                "TLS is configured and its `url` is http://",
                "Write `url` with https://, or remove the TLS settings.",
            ));
        }
        let pairs = [("dc", &consul.datacenter), ("ns", &consul.namespace)];
        let scope = pairs
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.clone()?)));
        Ok(Self {
            url,
            timeout: config.timeout,
            poll_interval: config.poll_interval,
            prefixes: outermost(&consul.prefixes),
            scope: scope.collect(),
        })
    }

    pub(super) fn prefix_of(&self, key: &str) -> Option<&str> {
        self.prefixes
            .iter()
            .map(String::as_str)
            .find(|prefix| key.starts_with(prefix))
    }
}

/// A client that sends this token, to the configured address and no other.
pub(super) fn client(tls: &TlsConfig, token: Option<&SecretString>) -> Result<reqwest::Client, BackendError> {
    let mut headers = HeaderMap::new();
    if let Some(token) = token {
        let value = HeaderValue::try_from(token.expose_secret().trim());
        let mut value = value.map_err(|_| {
            misconfigured(
                "the token has characters that a token cannot have",
                "Check the token or its file.",
            )
        })?;
        value.set_sensitive(true);
        headers.insert(TOKEN_HEADER, value);
    }
    let mut http = reqwest::Client::builder()
        .default_headers(headers)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy();
    let unusable = |setting: &str, error: &dyn std::fmt::Display| {
        misconfigured(
            format!("`{setting}` cannot be used: {error}"),
            "Check that the file holds PEM.",
        )
    };
    if let Some(file) = &tls.ca_file {
        let roots = reqwest::Certificate::from_pem_bundle(&pem(file, "ca_file")?)
            .map_err(|error| unusable("ca_file", &error))?;
        http = http.tls_certs_only(roots);
    }
    if let (Some(cert), Some(key)) = (&tls.cert_file, &tls.key_file) {
        let cert_and_key = [pem(cert, "cert_file")?, pem(key, "key_file")?].concat();
        let identity =
            reqwest::Identity::from_pem(&cert_and_key).map_err(|error| unusable("cert_file", &error))?;
        http = http.identity(identity);
    }
    http.build()
        .map_err(|error| misconfigured(format!("no HTTP client: {error}"), "Check the TLS settings."))
}

fn pem(file: &Path, setting: &str) -> Result<Vec<u8>, BackendError> {
    std::fs::read(file).map_err(|error| {
        misconfigured(
            format!("cannot read `{setting}` {}: {error}", file.display()),
            "Check the path, and that this process may read the file.",
        )
    })
}

/// The prefixes that are not part of another one.
fn outermost(prefixes: &[String]) -> Vec<String> {
    let mut sorted = prefixes.to_vec();
    sorted.sort();
    let mut outermost_prefixes: Vec<String> = Vec::with_capacity(sorted.len());
    for prefix in sorted {
        if !outermost_prefixes
            .last()
            .is_some_and(|outer| prefix.starts_with(outer))
        {
            outermost_prefixes.push(prefix);
        }
    }
    outermost_prefixes
}
