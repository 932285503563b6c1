//! Validated configuration of one etcd backend: endpoints, credentials, TLS, prefixes.
//!
//! Reads the TLS files once. Opens no connection, so an unreachable server is no error here.

use std::path::Path;
use std::time::Duration;

use domain::duration::millis;
use etcd_client::{Certificate, ConnectOptions, Identity, TlsOptions};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use crate::BackendError;
use crate::error::misconfigured;
use config::BackendConfig;
use config::etcd::EtcdConfig;
use config::tls::TlsConfig;

/// HTTP/2 pings on a connection with active calls. etcd closes connections that ping more often
/// than every 5 s.
const PING_EVERY: Duration = Duration::from_secs(10);

pub(super) struct EtcdSettings {
    /// Without credentials: these reach pages.
    pub(super) endpoints: Vec<String>,
    pub(super) user: Option<User>,
    tls: Option<TlsOptions>,
    /// Whether a client certificate is sent: etcd may take its name as the user.
    pub(super) certificate: bool,
    pub(super) timeout: Duration,
    pub(super) poll_interval_ms: i64,
    /// No prefix is part of another, so that no key is listed twice.
    pub(super) prefixes: Vec<Vec<u8>>,
}

pub(super) struct User {
    pub(super) name: String,
    password: SecretString,
}

impl EtcdSettings {
    pub(super) fn check(config: &BackendConfig, etcd: &EtcdConfig) -> Result<Self, BackendError> {
        let mut endpoints = Vec::with_capacity(etcd.endpoints.len());
        let mut in_url = None;
        for endpoint in &etcd.endpoints {
            let (address, user) = endpoint_parts(endpoint, &config.tls)?;
            endpoints.push(address);
            in_url = in_url.or(user);
        }
        let secure = endpoints
            .iter()
            .filter(|endpoint| endpoint.starts_with("https://"))
            .count();
        if endpoints.is_empty() {
            return Err(misconfigured(
                "it has no endpoints",
                "Set `endpoints`, e.g. [\"http://host:2379\"].",
            ));
        }
        if etcd.prefixes.is_empty() {
            return Err(misconfigured(
                "it has no prefixes",
                "Set `prefixes`, e.g. [\"/locks/\"].",
            ));
        }
        if secure != 0 && secure != endpoints.len() {
            return Err(misconfigured(
                "some of its endpoints are http:// and some are https://",
                "Write all of `endpoints` with the same scheme.",
            ));
        }
        if secure == 0 && config.tls.is_configured() {
            return Err(misconfigured(
                "TLS is configured and its endpoints are http://",
                "Write `endpoints` with https://, or remove the TLS settings.",
            ));
        }
        Ok(Self {
            endpoints,
            user: user(config, in_url),
            tls: if secure == 0 {
                None
            } else {
                Some(tls(&config.tls)?)
            },
            certificate: config.tls.cert_file.is_some(),
            timeout: config.timeout,
            poll_interval_ms: millis(config.poll_interval),
            prefixes: outermost(&etcd.prefixes),
        })
    }

    /// The same endpoints with the account of forced unlocks; `None` if not configured.
    pub(super) fn for_unlocks(
        config: &BackendConfig,
        etcd: &EtcdConfig,
    ) -> Result<Option<Self>, BackendError> {
        let Some(name) = etcd.unlock_user.clone() else {
            return Ok(None);
        };
        let password = etcd.unlock_password.clone();
        let mut settings = Self::check(config, etcd)?;
        settings.user = Some(User {
            name,
            password: password.unwrap_or_else(|| SecretString::from(String::new())),
        });
        Ok(Some(settings))
    }

    /// `login`: whether to authenticate first.
    pub(super) fn options(&self, login: bool) -> ConnectOptions {
        let mut options = ConnectOptions::new()
            .with_connect_timeout(self.timeout)
            .with_keep_alive(PING_EVERY, self.timeout)
            // etcd counts pings on an idle connection as abuse.
            .with_keep_alive_while_idle(false)
            // A member without a leader fails at once instead of waiting.
            .with_require_leader(true)
            .with_auto_token_refresh(true);
        if let Some(user) = self.user.as_ref().filter(|_| login) {
            options = options.with_user(&user.name, user.password.expose_secret());
        }
        if let Some(tls) = &self.tls {
            options = options.with_tls(tls.clone());
        }
        options
    }

    pub(super) fn timeout_ms(&self) -> i64 {
        millis(self.timeout)
    }
}

/// The address without credentials, and the credentials.
fn endpoint_parts(
    endpoint: &str,
    tls: &TlsConfig,
) -> Result<(String, Option<(String, String)>), BackendError> {
    let remedy = "Write each of `endpoints` as http://host:2379 or https://host:2379.";
    let with_scheme = match (endpoint.contains("://"), tls.is_configured()) {
        (true, _) => endpoint.to_owned(),
        (false, true) => format!("https://{endpoint}"),
        (false, false) => format!("http://{endpoint}"),
    };
    // Errors do not quote the endpoint: it may contain a password.
    let url = Url::parse(&with_scheme)
        .map_err(|error| misconfigured(format!("an endpoint is not a URL: {error}"), remedy))?;
    let Some(host) = url
        .host_str()
        .filter(|_| matches!(url.scheme(), "http" | "https"))
    else {
        return Err(misconfigured(
            "an endpoint is neither http://host nor https://host",
            remedy,
        ));
    };
    let port = url.port().unwrap_or(2379);
    let user = (!url.username().is_empty()).then(|| {
        (
            decoded(url.username()),
            decoded(url.password().unwrap_or_default()),
        )
    });
    Ok((format!("{}://{host}:{port}", url.scheme()), user))
}

fn decoded(part: &str) -> String {
    let spaced = part.replace('+', "%2B");
    url::form_urlencoded::parse(format!("v={spaced}").as_bytes())
        .next()
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}

fn user(config: &BackendConfig, in_url: Option<(String, String)>) -> Option<User> {
    let (url_name, url_password) = in_url.unzip();
    let name = config.user.clone().or(url_name)?;
    let password = config
        .password
        .clone()
        .or_else(|| url_password.map(SecretString::from));
    Some(User {
        name,
        password: password.unwrap_or_else(|| SecretString::from(String::new())),
    })
}

fn tls(config: &TlsConfig) -> Result<TlsOptions, BackendError> {
    let mut tls = match &config.ca_file {
        Some(file) => TlsOptions::new().ca_certificate(Certificate::from_pem(pem(file, "ca_file")?)),
        None => TlsOptions::new().with_enabled_roots(),
    };
    match (&config.cert_file, &config.key_file) {
        (Some(cert), Some(key)) => {
            tls = tls.identity(Identity::from_pem(pem(cert, "cert_file")?, pem(key, "key_file")?));
        }
        (None, None) => {}
        _ => {
            return Err(misconfigured(
                "only one of `cert_file` and `key_file` is set",
                "Set both, or neither.",
            ));
        }
    }
    Ok(match &config.server_name {
        Some(name) => tls.domain_name(name),
        None => tls,
    })
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
fn outermost(prefixes: &[String]) -> Vec<Vec<u8>> {
    let mut sorted: Vec<Vec<u8>> = prefixes.iter().map(|prefix| prefix.as_bytes().to_vec()).collect();
    sorted.sort();
    let mut outermost_prefixes: Vec<Vec<u8>> = Vec::with_capacity(sorted.len());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_inside_another_is_listed_once() {
        // Sorted, an outer prefix is right before those inside it.
        let prefixes = ["/locks/b/", "/elections/", "/locks/", "/locks/"].map(str::to_owned);
        assert_eq!(
            outermost(&prefixes),
            [b"/elections/".to_vec(), b"/locks/".to_vec()]
        );
    }

    #[test]
    fn credentials_are_removed_from_the_address_and_decoded() {
        // Characters that a URL must escape in user and password.
        let (address, user) = endpoint_parts("http://a%40b:p%2F+%3A@h", &TlsConfig::default()).unwrap();
        assert_eq!(address, "http://h:2379");
        assert_eq!(user, Some(("a@b".to_owned(), "p/+:".to_owned())));
    }
}
