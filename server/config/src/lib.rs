//! The configuration. Order of precedence: defaults < file < environment < flags.
//!
//! Owns the existing keys, their validation and its messages. All layers become one tree whose values know their
//! origin; typed readers take each key out of it and collect all errors; keys that no reader asked for are unknown.
//! docs/configuration.md is the reference, compared with the code by tests. Never connects to anything. Secret files
//! are read at start and at each reload.

pub mod access;
pub mod backend;
pub mod consul;
mod environment;
pub mod error;
pub mod etcd;
pub mod history;
mod identity;
pub mod lease;
pub mod lease_store;
pub mod limits;
pub mod log;
pub mod network;
pub mod notify;
pub mod oidc;
pub mod otel;
pub mod postgres;
pub mod provenance;
mod reader;
pub mod redis;
pub mod report;
mod secrets;
pub mod sources;
pub mod telemetry;
pub mod tls;
mod value_parsers;
mod value_tree;
pub mod zookeeper;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};

use domain::waits::identity::IdentityRule;
use secrecy::SecretString;
use url::Url;

pub use access::{AccessConfig, ServerTls};
pub use backend::{BackendConfig, SystemConfig};
pub use environment::is_empty_variable;
pub use error::{ConfigError, ConfigErrors};
pub use history::HistoryConfig;
pub use lease::LeaseConfig;
pub use lease_store::{EtcdAddress, LeaseStoreConfig, LeaseStores, PostgresAddress, PostgresLeaseStore};
pub use log::{LogConfig, LogFormat};
pub use network::Network;
pub use notify::NotifyConfig;
pub use oidc::OidcConfig;
pub use provenance::Origin;
pub use report::Entry;
pub use sources::{ConfigSources, FileSource, FlagSource};
pub use telemetry::TelemetryConfig;

use reader::{Reader, Section};

/// The complete configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// `listen`: address and port of the console. Default `127.0.0.1:3000`. Other than loopback only with `[tls]`,
    /// or with `[proxy]` and an https `public_url`.
    pub listen: SocketAddr,
    /// `public_url`: the console's public URL, for links and cookies. Default: the address it listens on.
    pub public_url: Option<Url>,
    /// `store` or `store_file`: `sqlite:` and a path, or `postgres://user@host/database`. Default
    /// `sqlite:leasehold.db`.
    pub store: SecretString,
    /// `log` and `log_format`.
    pub log: LogConfig,
    /// `[tls]`, `[proxy]`, `[oidc]`, `allowed_hosts` and `audit_checkpoint_file`.
    pub access: AccessConfig,
    /// `[lease]`
    pub lease: LeaseConfig,
    /// `[history]`
    pub history: HistoryConfig,
    /// `[notify]`
    pub notify: NotifyConfig,
    /// `[telemetry]`
    pub telemetry: TelemetryConfig,
    /// `[[backend]]`
    pub backends: Vec<BackendConfig>,
    /// `[[identity]]`: which owners of different backends are one program. Default none: no owners are joined.
    pub identity_rules: Vec<IdentityRule>,
}

pub const LISTEN_DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 3000);
pub const STORE_DEFAULT: &str = "sqlite:leasehold.db";

/// Result of reading: the configuration or its errors, and the origin of every key.
#[derive(Debug)]
pub struct Loaded {
    pub config: Result<Config, ConfigErrors>,
    /// Every key that was read or has a default, in the order of the reference.
    pub entries: Vec<Entry>,
    /// Every key that readers asked for, without names and positions: `backend.lease_table.preset`. Depends on the
    /// kinds of the backends.
    pub known: BTreeSet<String>,
}

impl Config {
    /// # Errors
    /// All errors together.
    pub fn load(sources: &ConfigSources) -> Result<Self, ConfigErrors> {
        read(sources).config
    }

    fn take(root: &mut Section<'_>) -> Self {
        let listen = root.or("listen", LISTEN_DEFAULT, &value_parsers::listen());
        let public_url = root.optional("public_url", &value_parsers::public_url());
        let backends = backend::read_all(root);
        Self {
            listen,
            store: read_store(root),
            access: AccessConfig::read(root, listen, public_url.as_ref()),
            public_url,
            log: LogConfig::read(root),
            lease: LeaseConfig::read(root.section("lease", "lease")),
            history: HistoryConfig::read(root.section("history", "history")),
            notify: NotifyConfig::read(root.section("notify", "notify")),
            telemetry: TelemetryConfig::read(root.section("telemetry", "telemetry")),
            identity_rules: identity::read_all(root, &backends),
            backends,
        }
    }
}

impl Default for Config {
    /// No backends, and the default of everything else.
    fn default() -> Self {
        Self {
            listen: LISTEN_DEFAULT,
            public_url: None,
            store: SecretString::from(STORE_DEFAULT),
            access: AccessConfig::default(),
            log: LogConfig::default(),
            lease: LeaseConfig::default(),
            history: HistoryConfig::default(),
            notify: NotifyConfig::default(),
            telemetry: TelemetryConfig::default(),
            backends: Vec::new(),
            identity_rules: Vec::new(),
        }
    }
}

/// Reads all layers. Accesses only the files that the configuration names.
pub fn read(sources: &ConfigSources) -> Loaded {
    let parsed = sources
        .file
        .as_ref()
        .map(|file| value_tree::parse(&file.path, &file.text));
    let mut tree = match parsed.transpose() {
        Ok(tree) => tree.unwrap_or_default(),
        Err(errors) => {
            // Stops here: further errors would only follow from the syntax error.
            return Loaded {
                config: Err(ConfigErrors(errors)),
                entries: Vec::new(),
                known: BTreeSet::new(),
            };
        }
    };
    environment::overlay(&mut tree, &sources.environment);
    for flag in &sources.flags {
        let origin = Origin::Flag {
            name: flag.name.to_owned(),
        };
        let node = value_tree::Node::untyped(&flag.value, origin.clone());
        environment::set(&mut tree, &[flag.key.to_owned()], node, &origin);
    }
    let reader = Reader::default();
    let mut root = reader.root(&tree);
    let config = Config::take(&mut root);
    root.finish();
    let reader::Read {
        entries,
        known,
        errors,
    } = reader.finish();
    Loaded {
        config: if errors.0.is_empty() {
            Ok(config)
        } else {
            Err(errors)
        },
        entries,
        known,
    }
}

fn read_store(root: &mut Section<'_>) -> SecretString {
    let expected = "store = \"sqlite:leasehold.db\", \"postgres://user@host/database\", or store_file, the path of a file that holds it";
    let validate = |text: &str| match text.strip_prefix("sqlite:") {
        Some("") => Err("names no file".to_owned()),
        Some(_) => Ok(()),
        None => secrets::url_of(&["postgres", "postgresql"])(text)
            .map_err(|_| "is neither sqlite: with a path nor a postgres:// URL".to_owned()),
    };
    let show = |text: &str| match text.strip_prefix("sqlite:") {
        Some(_) => value_parsers::quoted(text),
        None => secrets::without_credentials(text),
    };
    let is_set = root.has("store") || root.has("store_file");
    root.secret("store", "store_file", expected, &validate, show)
        .unwrap_or_else(|| {
            if !is_set {
                root.entry("store", value_parsers::quoted(STORE_DEFAULT), &Origin::Default);
            }
            SecretString::from(STORE_DEFAULT)
        })
}
