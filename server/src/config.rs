//! One composed, documented configuration. Order of precedence: defaults < file < environment < flags.
//!
//! Owns: which keys exist, what fits them, and what to say when something does not. All layers become one tree whose
//! values know where they came from; typed readers take each key out of it, note every mistake, and whatever
//! nobody asked for is an unknown key. docs/configuration.md is the reference, held to the code by tests.
//! Deliberately not here: connecting to anything. Secrets in files are read with the rest: at start, and at each reload.

pub mod access;
pub mod backend;
mod environment;
pub mod error;
pub mod etcd;
pub mod explain;
pub mod history;
pub mod lease;
pub mod limits;
pub mod log;
pub mod network;
pub mod notify;
pub mod oidc;
pub mod origin;
pub mod otel;
pub mod postgres;
mod reader;
pub mod redis;
mod rules;
mod secrets;
pub mod sources;
pub mod telemetry;
pub mod tls;
mod tree;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};

use secrecy::SecretString;
use url::Url;

pub use access::{AccessConfig, ServerTls};
pub use backend::{BackendConfig, SystemConfig};
pub use error::{ConfigError, ConfigErrors};
pub use explain::Entry;
pub use history::HistoryConfig;
pub use lease::LeaseConfig;
pub use log::{LogConfig, LogFormat};
pub use network::Network;
pub use notify::NotifyConfig;
pub use oidc::OidcConfig;
pub use origin::Origin;
pub use sources::{FileSource, FlagSource, Sources};
pub use telemetry::TelemetryConfig;

use reader::{Reader, Section};

/// Everything that can be configured.
#[derive(Debug, Clone)]
pub struct Config {
    /// `listen`: address and port of the console. Default `127.0.0.1:3000`. Beyond loopback only
    /// with `[tls]`, or with `[proxy]` and an https `public_url`.
    pub listen: SocketAddr,
    /// `public_url`: where people reach the console, for links and cookies. Default: the address it listens on.
    pub public_url: Option<Url>,
    /// `store` or `store_file`: `sqlite:` and a path, or `postgres://user@host/database`. Default
    /// `sqlite:leasehold.db`.
    pub store: SecretString,
    /// `log` and `log_format`.
    pub log: LogConfig,
    /// `[tls]`, `[proxy]`, `[oidc]`, `allowed_hosts` and `audit_heads_file`.
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
}

pub const LISTEN_DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 3000);
pub const STORE_DEFAULT: &str = "sqlite:leasehold.db";

/// What came of reading: the configuration or its mistakes, and the story of every key.
#[derive(Debug)]
pub struct Loaded {
    pub config: Result<Config, ConfigErrors>,
    /// Every key that was read or has its default, in the order of the reference.
    pub entries: Vec<Entry>,
    /// Every key that was asked for, without names and places: `backend.lease_table.preset`. What keys there are
    /// depends on the kinds of the backends.
    pub known: BTreeSet<String>,
}

impl Config {
    /// # Errors
    /// Every mistake that was found, together.
    pub fn load(sources: &Sources) -> Result<Self, ConfigErrors> {
        read(sources).config
    }

    fn take(root: &mut Section<'_>) -> Self {
        let listen = root.or("listen", LISTEN_DEFAULT, &rules::listen());
        let public_url = root.optional("public_url", &rules::public_url());
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
            backends: backend::read_all(root),
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
        }
    }
}

/// Reads all layers. Touches nothing but the files that the configuration names.
pub fn read(sources: &Sources) -> Loaded {
    let parsed = sources
        .file
        .as_ref()
        .map(|file| tree::parse(&file.path, &file.text));
    let mut tree = match parsed.transpose() {
        Ok(tree) => tree.unwrap_or_default(),
        Err(errors) => {
            // What follows from half a file would only be noise.
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
        let node = tree::Node::untyped(&flag.value, origin.clone());
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
    let fits = "store = \"sqlite:leasehold.db\", \"postgres://user@host/database\", or store_file, the path of a file that holds it";
    let judge = |text: &str| match text.strip_prefix("sqlite:") {
        Some("") => Err("names no file".to_owned()),
        Some(_) => Ok(()),
        None => secrets::url_of(&["postgres", "postgresql"])(text)
            .map_err(|_| "is neither sqlite: with a path nor a postgres:// URL".to_owned()),
    };
    let show = |text: &str| match text.strip_prefix("sqlite:") {
        Some(_) => rules::quoted(text),
        None => secrets::without_credentials(text),
    };
    let given = root.has("store") || root.has("store_file");
    root.secret("store", "store_file", fits, &judge, show)
        .unwrap_or_else(|| {
            if !given {
                root.entry("store", rules::quoted(STORE_DEFAULT), &Origin::Default);
            }
            SecretString::from(STORE_DEFAULT)
        })
}
