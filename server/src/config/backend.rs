//! What every `[[backend]]` has, whatever its kind.

use std::time::Duration;

use domain::names::BackendName;
use secrecy::SecretString;

use super::etcd::EtcdConfig;
use super::postgres::PostgresConfig;
use super::redis::RedisConfig;
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
