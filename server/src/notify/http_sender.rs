//! One request to one address, limited in time and size.

use std::error::Error as _;
use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::{Client, StatusCode, header, redirect};
use url::Url;

use super::connectivity_check::Unreachable;
use super::limits::{ANSWER_BYTES_MAX, ANSWER_CHARS_SHOWN, RETRY_AFTER_MAX, SEND_MAX};
use super::message::OutgoingRequest;
use super::ssrf_guard::{Checked, NameError, RefusedAddress, SsrfGuard, is_clear};

/// Two clients, because plain HTTP is allowed only into declared networks.
pub(super) struct WebhookClient {
    guard: SsrfGuard,
    tls: Result<Client, String>,
    clear: Result<Client, String>,
}

/// Result of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HttpReply {
    pub(super) status: Option<u16>,
    /// Response text, shortened for display.
    pub(super) text: String,
    pub(super) verdict: DeliveryVerdict,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DeliveryVerdict {
    Taken,
    /// Temporary failure; the receiver may have asked for a minimum wait.
    Later {
        why: String,
        after: Option<Duration>,
    },
    /// Permanent failure.
    Never {
        why: String,
    },
}

impl DeliveryVerdict {
    pub(super) fn fault(&self) -> Option<&str> {
        match self {
            Self::Taken => None,
            Self::Later { why, .. } | Self::Never { why } => Some(why),
        }
    }
}

impl WebhookClient {
    /// Without CA certificates the console still starts; each message then fails with the reason.
    pub(super) fn new(guard: &SsrfGuard) -> Self {
        let client = |is_clear| {
            let built = Client::builder()
                .dns_resolver(Checked::new(guard.clone(), is_clear))
                // A redirect or proxy would bypass the guard.
                .redirect(redirect::Policy::none())
                .no_proxy()
                .pool_max_idle_per_host(0)
                .https_only(!is_clear)
                .timeout(SEND_MAX)
                .user_agent("leasehold")
                .build();
            built.map_err(|error| {
                let why = format!(
                    "the HTTP client of notifications cannot be set up: {}",
                    root_cause(&error)
                );
                tracing::error!("{why}; check that the system's CA certificates are installed");
                why
            })
        };
        Self {
            guard: guard.clone(),
            tls: client(false),
            clear: client(true),
        }
    }

    pub(super) async fn send(&self, message: &OutgoingRequest, now: DateTime<Utc>) -> HttpReply {
        if let Err(refused) = self.guard.check_literal(&message.url) {
            return rejection_reply(&refused);
        }
        let client = match self.client(&message.url) {
            Ok(client) => client,
            Err(why) => {
                return unsent(DeliveryVerdict::Later {
                    why: why.clone(),
                    after: None,
                });
            }
        };
        let mut request = client
            .post(message.url.clone())
            .header(header::CONTENT_TYPE, "application/json")
            .body(message.body.clone());
        for header in &message.headers {
            request = request.header(header.name, header.value());
        }
        match request.send().await {
            Ok(response) => read(response, now).await,
            Err(error) => failure(&error),
        }
    }

    fn client(&self, url: &Url) -> &Result<Client, String> {
        if is_clear(url) { &self.clear } else { &self.tls }
    }

    /// Whether a server answers, with any status; uses the same path as a message.
    pub(super) async fn reach(&self, url: &Url) -> Result<(), Unreachable> {
        let origin = url.origin().ascii_serialization();
        let refused = |refused: &RefusedAddress| Unreachable {
            why: refused.to_string(),
            remedy: refused.remedy(),
        };
        self.guard.check_literal(url).map_err(|error| refused(&error))?;
        let client = self.client(url).as_ref().map_err(|why| Unreachable {
            why: why.clone(),
            remedy: "apt-get install -y ca-certificates # or set SSL_CERT_FILE to the authorities to trust"
                .to_owned(),
        })?;
        let Err(error) = client.head(url.clone()).send().await else {
            return Ok(());
        };
        if let Some(error) = find_refused_address(&error) {
            return Err(refused(error));
        }
        let why = why(&error);
        let remedy = match why.contains("certificate") {
            true => format!(
                "renew its certificate, or trust its authority here: put that into /usr/local/share/ca-certificates and run \
                 update-ca-certificates; then: curl -I {origin}"
            ),
            false => format!(
                "curl -I {origin} # from this machine: check that it runs, that its name resolves and that no firewall blocks it"
            ),
        };
        Err(Unreachable { why, remedy })
    }
}

async fn read(mut response: reqwest::Response, now: DateTime<Utc>) -> HttpReply {
    let status = response.status();
    let after = response
        .headers()
        .get(header::RETRY_AFTER)
        .and_then(|value| value.to_str().ok());
    let after = after.and_then(|text| retry_after(text, now));
    let mut bytes = Vec::new();
    // A truncated body does not matter: the status decides.
    while let Ok(Some(part)) = response.chunk().await {
        let remaining = ANSWER_BYTES_MAX.saturating_sub(bytes.len());
        bytes.extend_from_slice(&part[..part.len().min(remaining)]);
        if bytes.len() >= ANSWER_BYTES_MAX {
            break;
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    HttpReply {
        status: Some(status.as_u16()),
        verdict: classify(status, &text, after),
        text: truncate(&text, ANSWER_CHARS_SHOWN),
    }
}

fn classify(status: StatusCode, text: &str, after: Option<Duration>) -> DeliveryVerdict {
    let reply_text = truncate(text, 120);
    let reply_text = if reply_text.is_empty() {
        reply_text
    } else {
        format!(": {reply_text}")
    };
    let why = format!("answered {}{reply_text}", status.as_u16());
    match status.as_u16() {
        200..=299 => DeliveryVerdict::Taken,
        300..=399 => DeliveryVerdict::Never {
            why: format!(
                "answered {}: redirects are not followed; give the address that it leads to",
                status.as_u16()
            ),
        },
        408 | 425 | 429 | 500.. => DeliveryVerdict::Later { why, after },
        _ => DeliveryVerdict::Never { why },
    }
}

/// Seconds or an HTTP date.
fn retry_after(text: &str, now: DateTime<Utc>) -> Option<Duration> {
    let wait = match text.trim().parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let at = DateTime::parse_from_rfc2822(text.trim()).ok()?;
            (at.with_timezone(&Utc) - now).to_std().unwrap_or_default()
        }
    };
    Some(wait.min(RETRY_AFTER_MAX))
}

fn rejection_reply(refused: &RefusedAddress) -> HttpReply {
    unsent(DeliveryVerdict::Never {
        why: format!("not sent: {refused}. {}", refused.remedy()),
    })
}

fn unsent(verdict: DeliveryVerdict) -> HttpReply {
    HttpReply {
        status: None,
        text: String::new(),
        verdict,
    }
}

fn failure(error: &reqwest::Error) -> HttpReply {
    match find_refused_address(error) {
        Some(refused) => rejection_reply(refused),
        None => unsent(DeliveryVerdict::Later {
            why: why(error),
            after: None,
        }),
    }
}

/// A refusal of the guard in the error's causes.
fn find_refused_address(error: &reqwest::Error) -> Option<&RefusedAddress> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(NameError::RefusedAddress(refused)) = error.downcast_ref() {
            return Some(refused);
        }
        cause = error.source();
    }
    None
}

fn why(error: &reqwest::Error) -> String {
    match error.is_timeout() {
        true => format!("no answer within {} s", SEND_MAX.as_secs()),
        false => root_cause(error),
    }
}

/// The root cause, without the URL, which may be a secret.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    let mut why = "could not be sent".to_owned();
    while let Some(error) = cause {
        why = error.to_string();
        cause = error.source();
    }
    why
}

/// Shortened for display.
pub(super) fn truncate(text: &str, chars_max: usize) -> String {
    let start: String = text.trim().chars().take(chars_max).collect();
    let end = if text.trim().chars().nth(chars_max).is_some() {
        "…"
    } else {
        ""
    };
    format!("{}{end}", domain::escape::visible(&start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_transient_errors_are_retried() {
        // Accepted, rejected, redirected, overloaded, failed.
        let verdict = |status| classify(StatusCode::from_u16(status).unwrap(), "no\u{7}", None);
        assert_eq!(verdict(200), DeliveryVerdict::Taken);
        assert_eq!(verdict(204), DeliveryVerdict::Taken);
        for never in [301, 307, 400, 401, 404, 410] {
            assert!(matches!(verdict(never), DeliveryVerdict::Never { .. }), "{never}");
        }
        for later in [408, 425, 429, 500, 503] {
            assert!(matches!(verdict(later), DeliveryVerdict::Later { .. }), "{later}");
        }
        assert_eq!(verdict(500).fault(), Some("answered 500: no\\u{7}"));
    }

    #[test]
    fn retry_after_is_parsed_as_seconds_or_date_and_bounded() {
        // Both forms of the header, a past date, too long, and invalid.
        let now = DateTime::from_timestamp(1_445_412_470, 0).unwrap();
        let read = |text| retry_after(text, now).map(|wait| wait.as_secs());
        assert_eq!(read("7"), Some(7));
        assert_eq!(read("Wed, 21 Oct 2015 07:28:00 GMT"), Some(10));
        assert_eq!(read("Wed, 21 Oct 2015 07:00:00 GMT"), Some(0));
        assert_eq!(read("999999"), Some(RETRY_AFTER_MAX.as_secs()));
        assert_eq!(read("soon"), None);
    }
}
