//! Keys common to every `[[backend]]`.

use std::time::Duration;

use domain::backend::BackendKind;
use domain::names::BackendName;
use secrecy::{ExposeSecret, SecretString};

use super::consul::ConsulConfig;
use super::etcd::EtcdConfig;
use super::limits::{POLL_INTERVAL, SCAN_TIMEOUT, TIMEOUT};
use super::postgres::PostgresConfig;
use super::provenance::Origin;
use super::reader::Section;
use super::redis::RedisConfig;
use super::secrets;
use super::tls::TlsConfig;
use super::value_parsers;
use super::zookeeper::ZookeeperConfig;

/// One `[[backend]]`.
#[derive(Debug, Clone)]
pub struct BackendConfig {
    /// `name`: unique, `[a-z0-9-]`.
    pub name: BackendName,
    /// `poll_interval`: time between two scans. Default `2s`.
    pub poll_interval: Duration,
    /// `timeout`: limit of one response, after which the backend counts as not answering. Default `5s`.
    pub timeout: Duration,
    /// `scan_timeout`: limit of one scan, after which it is stopped and shown as partial. Default `20s`.
    pub scan_timeout: Duration,
    /// `ca_file`, `cert_file`, `key_file`, `server_name`.
    pub tls: TlsConfig,
    /// `user`; overrides the one in a URL.
    pub user: Option<String>,
    /// `password` or `password_file`; overrides the one in a URL.
    pub password: Option<SecretString>,
    /// `kind` and its own keys.
    pub system: SystemConfig,
}

#[derive(Debug, Clone)]
pub enum SystemConfig {
    Postgres(PostgresConfig),
    Redis(RedisConfig),
    Etcd(EtcdConfig),
    Zookeeper(ZookeeperConfig),
    Consul(ConsulConfig),
}

impl SystemConfig {
    pub const fn kind(&self) -> BackendKind {
        match self {
            Self::Postgres(_) => BackendKind::Postgres,
            Self::Redis(_) => BackendKind::Redis,
            Self::Etcd(_) => BackendKind::Etcd,
            Self::Zookeeper(_) => BackendKind::Zookeeper,
            Self::Consul(_) => BackendKind::Consul,
        }
    }
}

pub const POLL_INTERVAL_DEFAULT: Duration = Duration::from_secs(2);
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);
pub const SCAN_TIMEOUT_DEFAULT: Duration = Duration::from_secs(20);

/// Name of the built-in lease service among the backends.
pub const RESERVED_NAME: &str = "builtin";

domain::wire_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Kind {
        Postgres = "postgres",
        Redis = "redis",
        Etcd = "etcd",
        Zookeeper = "zookeeper",
        Consul = "consul",
    }
}

/// All backends in the order of the file; names are unique.
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
            // The other keys are read too, so that all errors are reported together.
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
                "Give each backend a unique name.".to_owned(),
            );
        }
        backends.extend(BackendConfig::read(section, BackendName::parse(&name).ok()));
    }
    backends
}

/// A backend that appears only in variables is more often a misspelled name than a backend.
fn read_kind(section: &mut Section<'_>) -> Option<Kind> {
    if !section.has("kind")
        && let Origin::Environment { name } = section.origin.clone()
    {
        section.node("kind");
        let prefix = name.rsplit_once("__").map_or(name.as_str(), |(prefix, _)| prefix);
        let remedy =
            format!("No [[backend]] of the file has this name: fix the variable, or set {prefix}__KIND too.");
        section.report_missing("kind", &remedy);
        return None;
    }
    section.required("kind", &value_parsers::choice())
}

fn name() -> value_parsers::Rule<'static, String> {
    let expected = "a name of 1 to 63 characters of a-z, 0-9 and -, such as \"orders-db\"";
    value_parsers::checked(expected, |text| {
        if text == RESERVED_NAME {
            return Err("is the name of Leasehold's own lease service".to_owned());
        }
        BackendName::parse(text)
            .map(|_| ())
            .map_err(|_| "cannot be a name".to_owned())
    })
}

impl BackendConfig {
    /// Whether both are equal, including secrets. Files are compared by path.
    pub fn is_same(&self, other: &Self) -> bool {
        // Debug output leaves the secrets out, so they are compared separately.
        format!("{self:?}") == format!("{other:?}") && self.secrets() == other.secrets()
    }

    fn secrets(&self) -> Vec<Option<&str>> {
        fn masked(secret: Option<&SecretString>) -> Option<&str> {
            secret.map(ExposeSecret::expose_secret)
        }
        let mut secrets = vec![masked(self.password.as_ref())];
        match &self.system {
            SystemConfig::Postgres(backend) => {
                secrets.extend([masked(Some(&backend.url)), masked(backend.unlock_url.as_ref())]);
            }
            SystemConfig::Redis(backend) => {
                secrets.extend(
                    [
                        &backend.unlock_url,
                        &backend.unlock_password,
                        &backend.sentinel_password,
                    ]
                    .map(|backend| masked(backend.as_ref())),
                );
                secrets.extend(backend.urls.iter().map(|url| masked(Some(url))));
            }
            SystemConfig::Etcd(backend) => secrets.push(masked(backend.unlock_password.as_ref())),
            SystemConfig::Zookeeper(backend) => secrets.push(masked(backend.unlock_password.as_ref())),
            SystemConfig::Consul(backend) => {
                secrets.extend([
                    masked(backend.token.as_ref()),
                    masked(backend.unlock_token.as_ref()),
                ]);
            }
        }
        secrets
    }

    fn read(mut section: Section<'_>, name: Option<BackendName>) -> Option<Self> {
        let kind = read_kind(&mut section);
        let poll_interval = section.or(
            "poll_interval",
            POLL_INTERVAL_DEFAULT,
            &value_parsers::duration(&POLL_INTERVAL),
        );
        let timeout = section.or("timeout", TIMEOUT_DEFAULT, &value_parsers::duration(&TIMEOUT));
        let scan_timeout = section.or(
            "scan_timeout",
            SCAN_TIMEOUT_DEFAULT,
            &value_parsers::duration(&SCAN_TIMEOUT),
        );
        if timeout > scan_timeout {
            let key = if section.has("scan_timeout") {
                "scan_timeout"
            } else {
                "timeout"
            };
            let message = format!(
                "one reply (timeout {}) may take longer than a whole scan (scan_timeout {})",
                value_parsers::span(&timeout),
                value_parsers::span(&scan_timeout)
            );
            let origin = section.place_of(key);
            section.error_at(
                key,
                &origin,
                message,
                "Lower `timeout` or raise `scan_timeout`.".to_owned(),
            );
        }
        let tls = TlsConfig::read(&mut section);
        let user = section.optional("user", &value_parsers::text("leasehold_watch"));
        let expected = "password = \"…\", or password_file, the path of a file that holds it";
        let password = section.secret(
            "password",
            "password_file",
            expected,
            &secrets::not_empty,
            secrets::hidden,
        );
        // Without a kind, the other keys cannot be checked.
        let system = match kind? {
            Kind::Postgres => PostgresConfig::read(&mut section).map(SystemConfig::Postgres),
            Kind::Redis => RedisConfig::read(&mut section).map(SystemConfig::Redis),
            Kind::Etcd => EtcdConfig::read(&mut section).map(SystemConfig::Etcd),
            Kind::Zookeeper => ZookeeperConfig::read(&mut section).map(SystemConfig::Zookeeper),
            Kind::Consul => ConsulConfig::read(&mut section).map(SystemConfig::Consul),
        };
        section.finish();
        Some(Self {
            name: name?,
            poll_interval,
            timeout,
            scan_timeout,
            tls,
            user,
            password,
            system: system?,
        })
    }
}
