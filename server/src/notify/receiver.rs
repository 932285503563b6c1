//! One receiver: its kind, where it is, and with what it is opened or signed. What is given is judged here, field by field.

use std::fmt;

use secrecy::{ExposeSecret as _, SecretString};
use url::{Host, Url};

use super::error::NotifyError;
use super::guard::{Guard, is_clear};
use super::limits::{
    NAME_BYTES_MAX, RESOLVE_MAX, SECRET_BYTES_MAX, SECRET_BYTES_MIN, URL_BYTES_MAX, URLS_MAX,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// All of its peers are told, again and again.
    Alertmanager,
    /// Alertmanager's shape, signed.
    Webhook,
    /// Its address is its secret.
    Slack,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Alertmanager, Self::Webhook, Self::Slack];

    pub const fn wire(self) -> &'static str {
        match self {
            Self::Alertmanager => "alertmanager",
            Self::Webhook => "webhook",
            Self::Slack => "slack",
        }
    }

    pub fn parse(wire: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.wire() == wire)
    }
}

/// Where to send. Debug and people see as much as they may.
#[derive(Clone, PartialEq, Eq)]
pub struct Address(Url);

impl Address {
    pub(super) const fn new(url: Url) -> Self {
        Self(url)
    }

    pub(super) const fn url(&self) -> &Url {
        &self.0
    }

    /// Of Slack's no more than the host; of others all but the query.
    pub fn shown(&self, kind: Kind) -> String {
        let origin = self.0.origin().ascii_serialization();
        match kind {
            Kind::Slack => format!("{origin}/…"),
            _ if self.0.query().is_some() => format!("{origin}{}?…", self.0.path()),
            _ => format!("{origin}{}", self.0.path()),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown(Kind::Slack))
    }
}

/// As it is sent to.
#[derive(Debug, Clone)]
pub struct Receiver {
    pub id: String,
    pub name: String,
    pub kind: Kind,
    pub(super) urls: Vec<Address>,
    pub(super) secret: Option<SecretString>,
    /// Also where it cannot be opened.
    pub(super) had_secret: bool,
    /// Why address and secret cannot be opened: then both are missing here.
    pub(super) locked: Option<String>,
}

impl Receiver {
    /// # Errors
    /// What is not given anew would be what nobody can open.
    pub(super) fn check_whole(&self, has_new_urls: bool, has_new_secret: bool) -> Result<(), NotifyError> {
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
            "is needed: what was kept cannot be opened",
            format!("Write it anew, or mend the key: {why}."),
        ))
    }
}

/// As it is listed: without what opens it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiverView {
    pub name: String,
    pub kind: Kind,
    pub urls: Vec<String>,
    pub has_secret: bool,
    /// Why it cannot be sent to at all: what opens it is sealed with a key that this server does not have.
    pub locked: Option<String>,
    pub created_at: i64,
    pub created_by: String,
    pub last_ok_at: Option<i64>,
    pub last_fault_at: Option<i64>,
    pub last_fault: Option<String>,
    /// On their way.
    pub waiting: u64,
    pub dead: u64,
}

impl ReceiverView {
    /// Why the last message was not taken, if it was not.
    pub fn fault(&self) -> Option<&str> {
        let is_later = self.last_fault_at > self.last_ok_at;
        let last = self.last_fault.as_deref().filter(|_| is_later);
        self.locked.as_deref().or(last)
    }
}

/// As somebody gives it. No addresses, no secret: those that are there stay.
#[derive(Debug)]
pub struct NewReceiver {
    pub name: String,
    pub kind: Kind,
    pub urls: Vec<SecretString>,
    pub secret: Option<SecretString>,
}

/// # Errors
/// The name does not fit.
pub(super) fn check_name(name: &str) -> Result<(), NotifyError> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_fit = name.len() <= NAME_BYTES_MAX && name.bytes().all(fits) && !name.starts_with('-');
    if name.is_empty() || !is_fit {
        return Err(NotifyError::invalid(
            "name",
            format!("is not 1 to {NAME_BYTES_MAX} of a-z, 0-9 and -"),
            "Write a name such as ops-webhook.",
        ));
    }
    Ok(())
}

/// # Errors
/// It is too short to sign with, or no secret at all.
pub(super) fn check_secret(kind: Kind, secret: Option<&SecretString>) -> Result<(), NotifyError> {
    let invalid = |why: String, mend: &str| Err(NotifyError::invalid("secret", why, mend));
    match (kind, secret.map(|secret| secret.expose_secret())) {
        (Kind::Webhook, None) => invalid(
            "is needed: with it the webhook checks that a message is ours".to_owned(),
            "Make one, with openssl rand -hex 32, and give it to the webhook too.",
        ),
        (Kind::Slack, Some(_)) => invalid(
            "is not for Slack, whose address is its secret".to_owned(),
            "Leave it out.",
        ),
        (_, Some(secret)) if secret.chars().any(|c| c.is_control() || !c.is_ascii()) => invalid(
            "holds characters that no header carries".to_owned(),
            "Write letters, digits and signs of ASCII.",
        ),
        (Kind::Webhook, Some(secret)) if secret.len() < SECRET_BYTES_MIN => invalid(
            format!("has fewer than {SECRET_BYTES_MIN} bytes and could be guessed"),
            "Make one with openssl rand -hex 32.",
        ),
        (_, Some(secret)) if secret.len() > SECRET_BYTES_MAX => invalid(
            format!("has more than {SECRET_BYTES_MAX} bytes"),
            "Write a shorter one.",
        ),
        _ => Ok(()),
    }
}

/// # Errors
/// One is no address, or leads to where nothing is sent.
pub(super) async fn check_urls(
    kind: Kind,
    urls: &[SecretString],
    guard: &Guard,
) -> Result<Vec<Address>, NotifyError> {
    let most = if kind == Kind::Alertmanager { URLS_MAX } else { 1 };
    if urls.len() > most {
        let why = format!("holds more than {most}");
        return Err(NotifyError::invalid(
            "urls",
            why,
            "Make a receiver for each of the others.",
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

fn check_url(kind: Kind, text: &str) -> Result<Url, NotifyError> {
    let invalid = |why: &str, mend: &str| Err(NotifyError::invalid("urls", why, mend));
    let example = match kind {
        Kind::Alertmanager => "Write an address such as https://alertmanager.example.com:9093.",
        Kind::Webhook => "Write an address such as https://hooks.example.com/leasehold.",
        Kind::Slack => "Write the address that Slack gave, https://hooks.slack.com/services/….",
    };
    if text.len() > URL_BYTES_MAX {
        return invalid(&format!("is longer than {URL_BYTES_MAX} bytes"), example);
    }
    let Ok(url) = Url::parse(text) else {
        return invalid("is not a URL", example);
    };
    if !matches!(url.scheme(), "https" | "http") {
        return invalid("is not https", example);
    }
    if !url.username().is_empty() || url.password().is_some() {
        let mend = "Leave them out; an Alertmanager's bearer token is given as its secret.";
        return invalid("holds a user or a password", mend);
    }
    if url.fragment().is_some() || (kind == Kind::Alertmanager && url.query().is_some()) {
        return invalid("has more than host, port and path", example);
    }
    Ok(url)
}

/// Now, so that whoever writes it hears it; and again at each connection, which alone is what counts.
async fn check_target(url: &Url, guard: &Guard) -> Result<(), NotifyError> {
    let refused = match url.host() {
        None => return Err(NotifyError::invalid("urls", "names no host", "Write one.")),
        Some(Host::Ipv4(_) | Host::Ipv6(_)) => guard.check_literal(url).err(),
        Some(Host::Domain(name)) => {
            let found = tokio::time::timeout(RESOLVE_MAX, guard.resolve(name, is_clear(url)));
            match found.await {
                Ok(Err(error)) => error.refused(),
                // A name that is not known now may be later.
                Ok(Ok(_)) | Err(_) => None,
            }
        }
    };
    let Some(refused) = refused else {
        return Ok(());
    };
    let host = url.host_str().unwrap_or_default();
    let why = match host == refused.address.to_string() {
        true => format!("leads to {}, which is {}", refused.address, refused.class),
        false => format!("leads to {host}, {}, which is {}", refused.address, refused.class),
    };
    let mend = match refused.is_clear() {
        true => "Write https; or, if this receiver is meant, declare its network in the configuration, [notify] allow.".to_owned(),
        false => refused.mend(),
    };
    Err(NotifyError::invalid("urls", why, mend))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refused(kind: Kind, url: &str) -> String {
        let urls = [SecretString::from(url)];
        match check_urls(kind, &urls, &Guard::default()).await {
            Err(NotifyError::Invalid { field, why, mend }) => {
                assert!(field == "urls" && mend.ends_with(['.', '…']), "{mend}");
                why
            }
            other => panic!("{url}: {other:?}"),
        }
    }

    #[tokio::test]
    async fn an_address_inside_of_the_network_is_refused_with_field_reason_and_mend() {
        // Each class as a literal, and names that lead to this machine.
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
            ("http://1.1.1.1/", "plain http"),
        ] {
            let said = refused(Kind::Webhook, url).await;
            assert!(said.contains(why), "{url}: {said}");
        }
    }

    #[tokio::test]
    async fn what_is_no_address_is_refused() {
        // Schemes, credentials, fragments, and several where one is meant.
        for url in [
            "",
            "ops",
            "ftp://h/",
            "file:///etc/passwd",
            "https://u:p@1.1.1.1/",
            "https://1.1.1.1/#x",
        ] {
            refused(Kind::Webhook, url).await;
        }
        refused(Kind::Alertmanager, "https://1.1.1.1/?a=b").await;
        let two = ["https://1.1.1.1/", "https://1.1.1.2/"].map(SecretString::from);
        assert!(check_urls(Kind::Webhook, &two, &Guard::default()).await.is_err());
        assert!(
            check_urls(Kind::Alertmanager, &two, &Guard::default())
                .await
                .is_ok()
        );
    }

    #[test]
    fn what_opens_a_receiver_is_not_in_what_is_shown_of_it() {
        // Slack's path, a webhook's query; and neither in a log.
        let address = |text: &str| Address::new(text.parse().unwrap());
        let slack = address("https://hooks.slack.com/services/T0/B0/c4nary");
        assert_eq!(slack.shown(Kind::Slack), "https://hooks.slack.com/…");
        let hook = address("https://h:8443/x?token=c4nary");
        assert_eq!(hook.shown(Kind::Webhook), "https://h:8443/x?…");
        assert!(!format!("{slack:?} {hook:?}").contains("c4nary"));
    }

    #[test]
    fn names_and_secrets_that_do_not_fit_are_named() {
        // Too long, empty, capitals; a webhook without a secret or with a weak one; Slack with one.
        for bad in ["", "Ops", "-x", "a b", &"x".repeat(64)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
        assert!(check_name("ops-1").is_ok());
        let check =
            |kind, secret: Option<&str>| check_secret(kind, secret.map(SecretString::from).as_ref()).is_ok();
        assert!(!check(Kind::Webhook, None) && !check(Kind::Webhook, Some("short")));
        assert!(check(Kind::Webhook, Some("0123456789abcdef")) && check(Kind::Alertmanager, None));
        assert!(!check(Kind::Slack, Some("0123456789abcdef")) && !check(Kind::Alertmanager, Some("a\nb")));
    }
}
