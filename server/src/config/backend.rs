//! What every `[[backend]]` has, whatever its kind.

use std::time::Duration;

use domain::names::BackendName;
use secrecy::{ExposeSecret, SecretString};

use super::etcd::EtcdConfig;
use super::limits::{BUDGET, POLL, TIMEOUT};
use super::origin::Origin;
use super::postgres::PostgresConfig;
use super::reader::Section;
use super::redis::RedisConfig;
use super::rules::{self, Choice};
use super::secrets;
use super::tls::TlsConfig;

/// One `[[backend]]`.
#[derive(Debug, Clone)]
pub struct BackendConfig {
    /// `name`: unique, `[a-z0-9-]`.
    pub name: BackendName,
    /// `poll`: how often the backend is listed. Default `2s`.
    pub poll: Duration,
    /// `timeout`: how long one answer may take before the backend counts as not answering. Default `5s`.
    pub timeout: Duration,
    /// `budget`: how long one pass over all locks may take before it is cut and shown as partial. Default `20s`.
    pub budget: Duration,
    /// `ca_file`, `cert_file`, `key_file`, `server_name`.
    pub tls: TlsConfig,
    /// `user`; overrides the one in a URL.
    pub user: Option<String>,
    /// `password` or `password_file`; overrides the one in a URL.
    pub password: Option<SecretString>,
    /// `kind` and what belongs to it.
    pub system: SystemConfig,
}

#[derive(Debug, Clone)]
pub enum SystemConfig {
    Postgres(PostgresConfig),
    Redis(RedisConfig),
    Etcd(EtcdConfig),
}

pub const POLL_DEFAULT: Duration = Duration::from_secs(2);
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);
pub const BUDGET_DEFAULT: Duration = Duration::from_secs(20);

/// The name of the built-in lease service among the backends.
pub const RESERVED_NAME: &str = "builtin";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Postgres,
    Redis,
    Etcd,
}

impl Choice for Kind {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("postgres", Self::Postgres),
        ("redis", Self::Redis),
        ("etcd", Self::Etcd),
    ];
}

/// All of them, in the order of the file; names are unique.
pub(super) fn read_all(root: &mut Section<'_>) -> Vec<BackendConfig> {
    let mut backends: Vec<BackendConfig> = Vec::new();
    for mut section in root.sections("backend", "backend") {
        if let Some(name) = section
            .peek("name")
            .filter(|name| BackendName::parse(name).is_ok())
        {
            section.rename(format!("backend.{name}"));
        }
        let Some(name) = section.required("name", &name()) else {
            // Its other keys are read all the same: their mistakes are told together with this one.
            BackendConfig::read(section, None);
            continue;
        };
        if backends.iter().any(|other| other.name.as_str() == name) {
            let message = format!("there is another backend called {name:?}");
            let origin = section.place_of("name");
            section.error_at(
                "name",
                &origin,
                message,
                "Give each backend a name of its own.".to_owned(),
            );
        }
        backends.extend(BackendConfig::read(section, BackendName::parse(&name).ok()));
    }
    backends
}

/// A backend that only variables name is more often a slip in a name than a backend.
fn read_kind(section: &mut Section<'_>) -> Option<Kind> {
    if !section.has("kind")
        && let Origin::Environment { name } = section.origin.clone()
    {
        section.node("kind");
        let prefix = name.rsplit_once("__").map_or(name.as_str(), |(prefix, _)| prefix);
        let mend = format!(
            "No [[backend]] of the file has this name: mend the variable, or set {prefix}__KIND too."
        );
        section.missing("kind", &mend);
        return None;
    }
    section.required("kind", &rules::choice())
}

fn name() -> rules::Rule<'static, String> {
    let fits = "a name of 1 to 63 characters of a-z, 0-9 and -, such as \"orders-db\"";
    rules::checked(fits, |text| {
        if text == RESERVED_NAME {
            return Err("is the name of Leasehold's own lease service".to_owned());
        }
        BackendName::parse(text)
            .map(|_| ())
            .map_err(|_| "cannot be a name".to_owned())
    })
}

impl BackendConfig {
    /// Whether both say the same, secrets included. A file that is named counts by its name.
    pub fn is_same(&self, other: &Self) -> bool {
        // What is written for people leaves the secrets out.
        format!("{self:?}") == format!("{other:?}") && self.secrets() == other.secrets()
    }

    fn secrets(&self) -> Vec<Option<&str>> {
        fn shown(secret: Option<&SecretString>) -> Option<&str> {
            secret.map(ExposeSecret::expose_secret)
        }
        let mut secrets = vec![shown(self.password.as_ref())];
        match &self.system {
            SystemConfig::Postgres(it) => {
                secrets.extend([shown(Some(&it.url)), shown(it.unlock_url.as_ref())]);
            }
            SystemConfig::Redis(it) => {
                secrets.push(shown(it.unlock_url.as_ref()));
                secrets.extend(it.urls.iter().map(|url| shown(Some(url))));
            }
            SystemConfig::Etcd(it) => secrets.push(shown(it.unlock_password.as_ref())),
        }
        secrets
    }

    fn read(mut section: Section<'_>, name: Option<BackendName>) -> Option<Self> {
        let kind = read_kind(&mut section);
        let poll = section.or("poll", POLL_DEFAULT, &rules::duration(&POLL));
        let timeout = section.or("timeout", TIMEOUT_DEFAULT, &rules::duration(&TIMEOUT));
        let budget = section.or("budget", BUDGET_DEFAULT, &rules::duration(&BUDGET));
        if timeout > budget {
            let key = if section.has("budget") {
                "budget"
            } else {
                "timeout"
            };
            let message = format!(
                "one answer (timeout {}) may take longer than a whole pass (budget {})",
                rules::span(&timeout),
                rules::span(&budget)
            );
            let origin = section.place_of(key);
            section.error_at(
                key,
                &origin,
                message,
                "Lower `timeout` or raise `budget`.".to_owned(),
            );
        }
        let tls = TlsConfig::read(&mut section);
        let user = section.optional("user", &rules::text("leasehold_watch"));
        let fits = "password = \"…\", or password_file, the path of a file that holds it";
        let password = section.secret(
            "password",
            "password_file",
            fits,
            &secrets::not_empty,
            secrets::hidden,
        );
        // Without a kind nobody can tell which of the other keys are wrong.
        let system = match kind? {
            Kind::Postgres => PostgresConfig::read(&mut section).map(SystemConfig::Postgres),
            Kind::Redis => RedisConfig::read(&mut section).map(SystemConfig::Redis),
            Kind::Etcd => EtcdConfig::read(&mut section).map(SystemConfig::Etcd),
        };
        section.finish();
        Some(Self {
            name: name?,
            poll,
            timeout,
            budget,
            tls,
            user,
            password,
            system: system?,
        })
    }
}
