//! A client of one server.

use std::net::IpAddr;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Url, redirect};

use crate::http_call::Calls;
use crate::withdrawal::Withdrawals;

const CONNECT_MAX: Duration = Duration::from_secs(5);
const PATIENCE_DEFAULT: Duration = Duration::from_secs(10);

/// Acquires leases of one server. Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) calls: Calls,
    pub(crate) patience: Duration,
    pub(crate) reads_events: bool,
    pub(crate) withdrawals: Withdrawals,
}

/// Options of a [`Client`].
#[must_use]
#[derive(Debug)]
pub struct Builder {
    server: String,
    token: Option<String>,
    traceparent: Option<String>,
    patience: Duration,
    reads_events: bool,
    insecure_http: bool,
    use_proxy: bool,
}

/// Why a client cannot be built. Nothing was sent.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("{0:?} is not a server address; a valid one is http://127.0.0.1:3000")]
    BadAddress(String),
    #[error(
        "`server` must not contain a user name or a password: they would replace the token. Use token() (leasehold run: \
         --token or LEASEHOLD_TOKEN)"
    )]
    CredentialsInAddress,
    #[error("the token contains characters that are not allowed in a header")]
    BadToken,
    #[error(
        "{0} is plain HTTP on another machine: the token would be readable on the network, so it is not sent. Use \
         https://, or \
         insecure_http() (leasehold run: --insecure-http) where the network is private"
    )]
    InsecureHttp(String),
    #[error("the HTTP client does not start: {0}")]
    NoHttp(#[source] reqwest::Error),
}

impl Client {
    /// With defaults, for a server that requires no token.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn new(server: &str) -> Result<Self, ClientError> {
        Self::builder(server).build()
    }

    /// With options. `server` is an address such as `https://locks.example.com`, with the path of a proxy if there is one.
    pub fn builder(server: &str) -> Builder {
        Builder {
            server: server.to_owned(),
            token: None,
            traceparent: None,
            patience: PATIENCE_DEFAULT,
            reads_events: true,
            insecure_http: false,
            use_proxy: false,
        }
    }
}

impl Builder {
    /// Sent as `Authorization: Bearer` with every request.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// W3C trace context of the requests. A malformed one is not sent, because tracing must not break a lease.
    pub fn traceparent(mut self, traceparent: impl Into<String>) -> Self {
        self.traceparent = Some(traceparent.into()).filter(|text| is_traceparent(text));
        self
    }

    /// How long an acquire retries a server that does not answer, in addition to the wait. Default 10 s. A single attempt
    /// does not last longer either: zero is too short for any answer.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Disables the event stream of each lease (one connection each): a revocation is then noticed at the next
    /// renewal.
    pub fn without_events(mut self) -> Self {
        self.reads_events = false;
        self
    }

    /// Sends the token over plain HTTP to another machine. Always allowed on loopback.
    pub fn insecure_http(mut self) -> Self {
        self.insecure_http = true;
        self
    }

    /// Uses the proxy of `HTTPS_PROXY`, `HTTP_PROXY` or `ALL_PROXY`. Ignored by default: a proxy can read every
    /// token sent over plain HTTP.
    pub fn use_proxy(mut self) -> Self {
        self.use_proxy = true;
        self
    }

    /// Builds the client. Installs ring as TLS provider of the process if none is installed.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn build(self) -> Result<Client, ClientError> {
        let server = Url::parse(&self.server).ok();
        let server = server.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let server = server.ok_or(ClientError::BadAddress(self.server))?;
        if !server.username().is_empty() || server.password().is_some() {
            return Err(ClientError::CredentialsInAddress);
        }
        let is_clear = server.scheme() == "http" && !is_loopback(&server);
        if is_clear && self.token.is_some() && !self.insecure_http {
            return Err(ClientError::InsecureHttp(server.origin().ascii_serialization()));
        }
        let mut headers = HeaderMap::new();
        if let Some(token) = self.token {
            let value = HeaderValue::try_from(format!("Bearer {token}"));
            let mut value = value.map_err(|_| ClientError::BadToken)?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        if let Some(Ok(value)) = self.traceparent.map(HeaderValue::try_from) {
            headers.insert("traceparent", value);
        }
        // An existing provider stays and is sufficient.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut http = reqwest::Client::builder()
            .default_headers(headers)
            .connect_timeout(CONNECT_MAX)
            .redirect(redirect::Policy::none());
        if !self.use_proxy || is_loopback(&server) {
            http = http.no_proxy();
        }
        Ok(Client {
            calls: Calls {
                http: http.build().map_err(ClientError::NoHttp)?,
                server,
            },
            patience: self.patience,
            reads_events: self.reads_events,
            withdrawals: Withdrawals::default(),
        })
    }
}

/// `00-`, 32 and 16 hexadecimal digits, and two more.
fn is_traceparent(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let is_hex = |part: &str, len| {
        part.len() == len
            && part
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    matches!(parts[..], ["00", trace, span, flags] if is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2))
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let ip = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_valid_traceparent_is_sent() {
        // The standard's example is valid; other content is not.
        assert!(is_traceparent(
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        ));
        for other in [
            "",
            "1",
            "00-xyz-b7ad6b7169203331-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        ] {
            assert!(!is_traceparent(other), "{other}");
        }
    }

    #[test]
    fn invalid_server_urls_and_tokens_are_rejected() {
        // Before anything is sent.
        for server in ["", "127.0.0.1:3000", "ftp://h", "http://", "unix:/tmp/s"] {
            let error = Client::new(server).unwrap_err();
            assert!(matches!(error, ClientError::BadAddress(_)), "{server}: {error}");
        }
        let error = Client::builder("https://h").token("a\nb").build().unwrap_err();
        assert!(matches!(error, ClientError::BadToken));
        assert!(Client::new("https://locks.example.com/below").is_ok());
    }

    #[test]
    fn credentials_in_a_server_url_are_rejected() {
        // They would be sent as `Authorization: Basic` instead of the token; the message does not repeat them.
        for server in [
            "https://ada:hunter2@h",
            "https://:hunter2@h",
            "http://hunter2@127.0.0.1:3000",
        ] {
            let error = Client::builder(server).token("t").build().unwrap_err();
            assert!(
                matches!(error, ClientError::CredentialsInAddress),
                "{server}: {error}"
            );
            let message = error.to_string();
            assert!(
                message.contains("`server`") && !message.contains("hunter2"),
                "{message}"
            );
        }
        assert!(Client::new("https://h/path@with:at").is_ok());
    }

    #[test]
    fn loopback_is_called_without_a_proxy() {
        // By name and by address of both families.
        for (server, is) in [
            ("http://localhost:1", true),
            ("http://127.9.9.9:1", true),
            ("http://[::1]:1", true),
            ("http://10.0.0.1:1", false),
            ("http://localhost.example.com", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(server).unwrap()), is, "{server}");
        }
    }
}
