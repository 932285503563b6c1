//! One receiver: kind, addresses and secret, with the validation of each field.

use std::fmt;

use secrecy::{ExposeSecret as _, SecretString};
use url::{Host, Url};

use super::error::NotifyError;
use super::limits::{
    NAME_BYTES_MAX, RESOLVE_MAX, SECRET_BYTES_MAX, SECRET_BYTES_MIN, URL_BYTES_MAX, URLS_MAX,
};
use super::ssrf_guard::{SsrfGuard, is_clear};

domain::wire_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ReceiverKind {
        /// Alerts are resent to all of its peers.
        Alertmanager = "alertmanager",
        /// Alertmanager's webhook format, signed.
        Webhook = "webhook",
        /// Its address is its secret.
        Slack = "slack",
    }
}

/// A receiver's address. Debug and lists show it without secret parts.
#[derive(Clone, PartialEq, Eq)]
pub struct Address(Url);

impl Address {
    pub(super) const fn new(url: Url) -> Self {
        Self(url)
    }

    pub(super) const fn url(&self) -> &Url {
        &self.0
    }

    /// Slack: the host only; others: everything but the query.
    pub fn display_address(&self, kind: ReceiverKind) -> String {
        let origin = self.0.origin().ascii_serialization();
        match kind {
            ReceiverKind::Slack => format!("{origin}/…"),
            _ if self.0.query().is_some() => format!("{origin}{}?…", self.0.path()),
            _ => format!("{origin}{}", self.0.path()),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.display_address(ReceiverKind::Slack))
    }
}

/// A receiver as used for delivery.
#[derive(Debug, Clone)]
pub struct Receiver {
    pub id: String,
    pub name: String,
    pub kind: ReceiverKind,
    pub(super) urls: Vec<Address>,
    pub(super) secret: Option<SecretString>,
    /// Also true if it cannot be decrypted.
    pub(super) had_secret: bool,
    /// Why address and secret cannot be decrypted; both are then empty.
    pub(super) locked: Option<String>,
}

impl Receiver {
    /// # Errors
    /// A field that is not replaced cannot be decrypted.
    pub(super) fn check_decryptable(
        &self,
        has_new_urls: bool,
        has_new_secret: bool,
    ) -> Result<(), NotifyError> {
        let Some(why) = &self.locked else {
            return Ok(());
        };
        let missing = match (has_new_urls, has_new_secret || !self.had_secret) {
            (true, true) => return Ok(()),
            (false, _) => "urls",
            (true, false) => "secret",
        };
        Err(NotifyError::invalid(
            missing,
            "is required: the stored value cannot be decrypted",
            format!("Enter it again, or correct the key: {why}."),
        ))
    }

    /// Allows the stored secret to be kept with these addresses.
    ///
    /// # Errors
    /// It would be sent to an origin that the receiver did not have.
    pub(super) fn check_kept_secret(&self, addresses: &[Address]) -> Result<(), NotifyError> {
        let is_known = |address: &Address| {
            let origin = address.url().origin();
            self.urls.iter().any(|known| known.url().origin() == origin)
        };
        if !self.had_secret || addresses.iter().all(is_known) {
            return Ok(());
        }
        Err(NotifyError::invalid(
            "secret",
            "is required again: the stored one is not sent to a new scheme, host or port",
            "Enter the secret for the new address.",
        ))
    }
}

/// A receiver in a list, without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiverView {
    pub name: String,
    pub kind: ReceiverKind,
    pub urls: Vec<String>,
    pub has_secret: bool,
    /// Why nothing can be sent: its secrets are encrypted with a key that this server does not have.
    pub locked: Option<String>,
    pub created_at: i64,
    pub created_by: String,
    pub last_ok_at: Option<i64>,
    pub last_fault_at: Option<i64>,
    pub last_fault: Option<String>,
    /// Pending messages.
    pub waiting: u64,
    pub dead: u64,
}

impl ReceiverView {
    /// Why the last message was not accepted, if it was not.
    pub fn fault(&self) -> Option<&str> {
        let is_later = self.last_fault_at > self.last_ok_at;
        let last = self.last_fault.as_deref().filter(|_| is_later);
        self.locked.as_deref().or(last)
    }
}

/// Input of a new or changed receiver. Without addresses or secret the stored ones stay.
#[derive(Debug)]
pub struct NewReceiver {
    pub name: String,
    pub kind: ReceiverKind,
    pub urls: Vec<SecretString>,
    pub secret: Option<SecretString>,
}

/// # Errors
/// The name is invalid.
pub(super) fn check_name(name: &str) -> Result<(), NotifyError> {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_valid = name.len() <= NAME_BYTES_MAX && name.bytes().all(is_allowed) && !name.starts_with('-');
    if name.is_empty() || !is_valid {
        return Err(NotifyError::invalid(
            "name",
            format!("must be 1 to {NAME_BYTES_MAX} of a-z, 0-9 and -"),
            "Write a name such as ops-webhook.",
        ));
    }
    Ok(())
}

/// # Errors
/// The secret is missing or too short.
pub(super) fn check_secret(kind: ReceiverKind, secret: Option<&SecretString>) -> Result<(), NotifyError> {
    let invalid = |why: String, remedy: &str| Err(NotifyError::invalid("secret", why, remedy));
    match (kind, secret.map(|secret| secret.expose_secret())) {
        (ReceiverKind::Webhook, None) => invalid(
            "is required: the webhook verifies the signature of a message with it".to_owned(),
            "Make one, with openssl rand -hex 32, and give it to the webhook too.",
        ),
        (ReceiverKind::Slack, Some(_)) => invalid(
            "is not for Slack, whose address is its secret".to_owned(),
            "Leave it out.",
        ),
        (_, Some(secret)) if secret.chars().any(|c| c.is_control() || !c.is_ascii()) => invalid(
            "contains characters that an HTTP header cannot carry".to_owned(),
            "Use printable ASCII characters.",
        ),
        (ReceiverKind::Webhook, Some(secret)) if secret.len() < SECRET_BYTES_MIN => invalid(
            format!("must have at least {SECRET_BYTES_MIN} bytes"),
            "Make one with openssl rand -hex 32.",
        ),
        (_, Some(secret)) if secret.len() > SECRET_BYTES_MAX => invalid(
            format!("must have at most {SECRET_BYTES_MAX} bytes"),
            "Use a shorter one.",
        ),
        _ => Ok(()),
    }
}

/// # Errors
/// An address is invalid or not allowed.
pub(super) async fn check_urls(
    kind: ReceiverKind,
    urls: &[SecretString],
    guard: &SsrfGuard,
) -> Result<Vec<Address>, NotifyError> {
    let most = if kind == ReceiverKind::Alertmanager {
        URLS_MAX
    } else {
        1
    };
    if urls.len() > most {
        let why = format!("must have at most {most} addresses");
        return Err(NotifyError::invalid(
            "urls",
            why,
            "Create a receiver for each of the others.",
        ));
    }
    let mut addresses = Vec::new();
    for url in urls {
        let url = check_url(kind, url.expose_secret())?;
        check_target(&url, guard).await?;
        addresses.push(Address::new(url));
    }
    Ok(addresses)
}

fn check_url(kind: ReceiverKind, text: &str) -> Result<Url, NotifyError> {
    let invalid = |why: &str, remedy: &str| Err(NotifyError::invalid("urls", why, remedy));
    let example = match kind {
        ReceiverKind::Alertmanager => "Write an address such as https://alertmanager.example.com:9093.",
        ReceiverKind::Webhook => "Write an address such as https://hooks.example.com/leasehold.",
        ReceiverKind::Slack => "Write the address that Slack gave, https://hooks.slack.com/services/….",
    };
    if text.len() > URL_BYTES_MAX {
        return invalid(&format!("must have at most {URL_BYTES_MAX} bytes"), example);
    }
    let Ok(url) = Url::parse(text) else {
        return invalid("is not a URL", example);
    };
    if !matches!(url.scheme(), "https" | "http") {
        return invalid("is not https", example);
    }
    if !url.username().is_empty() || url.password().is_some() {
        let remedy = "Leave them out; an Alertmanager's bearer token is given as its secret.";
        return invalid("must not contain a user or a password", remedy);
    }
    if url.fragment().is_some() || (kind == ReceiverKind::Alertmanager && url.query().is_some()) {
        return invalid("must have only host, port and path", example);
    }
    Ok(url)
}

/// Checks an address when it is saved, so that its author sees the error. The protection is the check at each connection.
async fn check_target(url: &Url, guard: &SsrfGuard) -> Result<(), NotifyError> {
    let rejection = match url.host() {
        None => return Err(NotifyError::invalid("urls", "must name a host", "Write one.")),
        Some(Host::Ipv4(_) | Host::Ipv6(_)) => guard.check_literal(url).err(),
        Some(Host::Domain(name)) => {
            let found = tokio::time::timeout(RESOLVE_MAX, guard.resolve(name, is_clear(url)));
            match found.await {
                Ok(Err(error)) => error.refused(),
                // A name that cannot be resolved now may be valid later.
                Ok(Ok(_)) | Err(_) => None,
            }
        }
    };
    let Some(rejection) = rejection else {
        return Ok(());
    };
    let host = url.host_str().unwrap_or_default();
    let why = match host == rejection.address.to_string() {
        true => format!("leads to {}, which is {}", rejection.address, rejection.class),
        false => format!(
            "leads to {host}, {}, which is {}",
            rejection.address, rejection.class
        ),
    };
    let remedy = match rejection.is_clear() {
        true => "Write https; or, if this receiver is meant, declare its network in the configuration, [notify] allowed_networks.".to_owned(),
        false => rejection.remedy(),
    };
    Err(NotifyError::invalid("urls", why, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn rejection_reason(kind: ReceiverKind, url: &str) -> String {
        let urls = [SecretString::from(url)];
        match check_urls(kind, &urls, &SsrfGuard::default()).await {
            Err(NotifyError::Invalid { field, why, remedy }) => {
                assert!(field == "urls" && remedy.ends_with(['.', '…']), "{remedy}");
                why
            }
            other => panic!("{url}: {other:?}"),
        }
    }

    #[tokio::test]
    async fn an_internal_address_is_rejected_with_field_and_remedy() {
        // Each class as a literal, and names that resolve to this machine.
        for (url, why) in [
            ("https://127.0.0.1/x", "loopback"),
            ("https://localhost/x", "loopback"),
            ("https://localhost./x", "loopback"),
            ("https://inner.localhost/x", "loopback"),
            ("https://10.1.2.3/", "private"),
            ("https://[fe80::1]/", "link-local"),
            ("https://169.254.169.254/latest/meta-data", "metadata"),
            ("https://[::ffff:10.0.0.1]/", "private"),
            ("https://0.0.0.0/", "unspecified"),
            ("https://100.64.9.9/", "CGNAT"),
            ("http://1.1.1.1/", "plain HTTP"),
        ] {
            let message = rejection_reason(ReceiverKind::Webhook, url).await;
            assert!(message.contains(why), "{url}: {message}");
        }
    }

    #[tokio::test]
    async fn invalid_addresses_are_rejected() {
        // Schemes, credentials, fragments, and several addresses where one is allowed.
        for url in [
            "",
            "ops",
            "ftp://h/",
            "file:///etc/passwd",
            "https://u:p@1.1.1.1/",
            "https://1.1.1.1/#x",
        ] {
            rejection_reason(ReceiverKind::Webhook, url).await;
        }
        rejection_reason(ReceiverKind::Alertmanager, "https://1.1.1.1/?a=b").await;
        let two = ["https://1.1.1.1/", "https://1.1.1.2/"].map(SecretString::from);
        assert!(
            check_urls(ReceiverKind::Webhook, &two, &SsrfGuard::default())
                .await
                .is_err()
        );
        assert!(
            check_urls(ReceiverKind::Alertmanager, &two, &SsrfGuard::default())
                .await
                .is_ok()
        );
    }

    #[test]
    fn secrets_of_a_receiver_are_not_shown() {
        // Slack's path and a webhook's query are hidden in lists and in debug output.
        let address = |text: &str| Address::new(text.parse().unwrap());
        let slack = address("https://hooks.slack.com/services/T0/B0/c4nary");
        assert_eq!(
            slack.display_address(ReceiverKind::Slack),
            "https://hooks.slack.com/…"
        );
        let hook = address("https://h:8443/x?token=c4nary");
        assert_eq!(hook.display_address(ReceiverKind::Webhook), "https://h:8443/x?…");
        assert!(!format!("{slack:?} {hook:?}").contains("c4nary"));
    }

    #[test]
    fn invalid_names_and_secrets_are_reported() {
        // Too long, empty, capitals; a webhook without a secret or with a weak one; Slack with one.
        for bad in ["", "Ops", "-x", "a b", &"x".repeat(64)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
        assert!(check_name("ops-1").is_ok());
        let check =
            |kind, secret: Option<&str>| check_secret(kind, secret.map(SecretString::from).as_ref()).is_ok();
        assert!(!check(ReceiverKind::Webhook, None) && !check(ReceiverKind::Webhook, Some("short")));
        assert!(
            check(ReceiverKind::Webhook, Some("0123456789abcdef")) && check(ReceiverKind::Alertmanager, None)
        );
        assert!(
            !check(ReceiverKind::Slack, Some("0123456789abcdef"))
                && !check(ReceiverKind::Alertmanager, Some("a\nb"))
        );
    }
}
