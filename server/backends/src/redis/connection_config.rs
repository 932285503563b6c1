//! Connection settings: turns the configuration into clients, and names invalid keys.
//!
//! Errors never contain a URL: it may have a password.

use std::time::Duration;

use ::redis::{
    AsyncConnectionConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion,
    RedisConnectionInfo, RedisError,
};
use secrecy::{ExposeSecret, SecretString};

use super::connect::{self, Address, Connection};
use super::tls::TlsSettings;
use crate::BackendError;
use crate::error::misconfigured;
use config::BackendConfig;
use config::redis::RedisConfig;

/// One server, with everything needed to log in.
pub(super) struct Target {
    server: Address,
    login: RedisConnectionInfo,
    /// With scheme and database, for display.
    pub(super) address: String,
    /// `host:port`.
    pub(super) name: String,
    pub(super) tls: bool,
    pub(super) database: i64,
    pub(super) timeout: Duration,
}

impl Target {
    fn new(server: Address, login: RedisConnectionInfo, timeout: Duration) -> Self {
        // Sending the library's name would need one more permission, and its refusal would fill
        // the server's ACL LOG.
        let login = login.set_skip_set_lib_name();
        let database = login.db();
        Self {
            address: address(&server, database),
            name: name(&server),
            tls: matches!(server, Address::Tcp { tls: Some(_), .. }),
            server,
            login,
            database,
            timeout,
        }
    }

    /// Empty for a socket.
    pub(super) fn host(&self) -> &str {
        match &self.server {
            Address::Tcp { host, .. } => host,
            Address::Unix(_) => "",
        }
    }

    /// A connection for requests. The caller limits the time.
    pub(super) async fn connect(&self) -> Result<Connection, RedisError> {
        self.dial(ProtocolVersion::RESP2, self.settings()).await
    }

    /// One that also receives pushes: in RESP3 a connection can subscribe and send requests.
    pub(super) async fn connect_pushing(
        &self,
        push: impl ::redis::aio::AsyncPushSender,
    ) -> Result<Connection, RedisError> {
        self.dial(ProtocolVersion::RESP3, self.settings().set_push_sender(push))
            .await
    }

    async fn dial(
        &self,
        protocol: ProtocolVersion,
        settings: AsyncConnectionConfig,
    ) -> Result<Connection, RedisError> {
        let login = self.login.clone().set_protocol(protocol);
        connect::connect(&self.server, &login, settings).await
    }

    fn settings(&self) -> AsyncConnectionConfig {
        AsyncConnectionConfig::new().set_response_timeout(Some(self.timeout))
    }
}

/// Accounts, TLS and timeout of the servers of a backend, for addresses in `urls` and for those
/// that a server reports.
pub(super) struct Servers {
    watch: RedisConnectionInfo,
    unlock: Option<RedisConnectionInfo>,
    tls: Option<TlsSettings>,
    timeout: Duration,
}

/// One parsed address of `urls`.
pub(super) struct Listed {
    pub(super) host: String,
    pub(super) port: u16,
}

impl Servers {
    pub(super) fn watching(&self, host: &str, port: u16) -> Result<Target, BackendError> {
        Ok(Target::new(
            self.tcp(host, port)?,
            self.watch.clone(),
            self.timeout,
        ))
    }

    pub(super) fn unlocking(&self, host: &str, port: u16) -> Option<Result<Target, BackendError>> {
        let login = self.unlock.clone()?;
        let server = self.tcp(host, port);
        Some(server.map(|server| Target::new(server, login, self.timeout)))
    }

    pub(super) const fn may_unlock(&self) -> bool {
        self.unlock.is_some()
    }

    fn tcp(&self, host: &str, port: u16) -> Result<Address, BackendError> {
        let tls = self.tls.as_ref().map(|tls| tls.for_host(host)).transpose()?;
        Ok(Address::Tcp {
            host: host.to_owned(),
            port,
            tls,
        })
    }
}

/// The servers of a cluster or behind Sentinels, with the listed addresses.
pub(super) fn servers(
    config: &BackendConfig,
    redis: &RedisConfig,
) -> Result<(Servers, Vec<Listed>), BackendError> {
    let infos = parse_urls(redis)?;
    let mut listed = Vec::with_capacity(infos.len());
    let mut tls = None;
    for info in &infos {
        let Address::Tcp { host, port, tls: own } = resolve(info.addr(), config)? else {
            return Err(misconfigured(
                format!("`urls` names a socket, and mode is {:?}", redis.mode.as_str()),
                "Use redis:// or rediss://.".to_owned(),
            ));
        };
        if tls.is_none() && own.is_some() {
            tls = Some(TlsSettings::new(&config.tls)?);
        }
        listed.push(Listed { host, port });
    }
    let first = infos.first().map(ConnectionInfo::redis_settings);
    let base = first.cloned().unwrap_or_default();
    let database = base.db();
    Ok((
        Servers {
            watch: watch_login(base, config),
            unlock: unlock_login(redis, database),
            tls,
            timeout: config.timeout,
        },
        listed,
    ))
}

/// A Sentinel: its own account, no database.
pub(super) fn sentinel(
    servers: &Servers,
    redis: &RedisConfig,
    listed: &Listed,
) -> Result<Target, BackendError> {
    let login = RedisConnectionInfo::default();
    let login = with_account(
        login,
        redis.sentinel_user.as_deref(),
        redis.sentinel_password.as_ref(),
    );
    let server = servers.tcp(&listed.host, listed.port)?;
    Ok(Target::new(server, login, servers.timeout))
}

/// Each address of `urls` as a node of its own, with the target of forced unlocks.
pub(super) fn nodes(
    config: &BackendConfig,
    redis: &RedisConfig,
) -> Result<Vec<(Target, Option<Target>)>, BackendError> {
    let infos = parse_urls(redis)?;
    let nodes = infos.iter().map(|info| {
        let server = resolve(info.addr(), config)?;
        let login = info.redis_settings().clone();
        let unlock = match &redis.unlock_url {
            Some(url) => {
                let info = parsed(url, "unlock_url")?;
                let login = info.redis_settings().clone();
                Some(Target::new(resolve(info.addr(), config)?, login, config.timeout))
            }
            None => unlock_login(redis, login.db())
                .map(|login| Target::new(server.clone(), login, config.timeout)),
        };
        let watch = watch_login(login, config);
        Ok((Target::new(server, watch, config.timeout), unlock))
    });
    nodes.collect()
}

fn watch_login(login: RedisConnectionInfo, config: &BackendConfig) -> RedisConnectionInfo {
    with_account(login, config.user.as_deref(), config.password.as_ref())
}

/// A user without a password connects without authentication.
fn unlock_login(redis: &RedisConfig, database: i64) -> Option<RedisConnectionInfo> {
    let user = redis.unlock_user.as_deref()?;
    let login = RedisConnectionInfo::default().set_db(database);
    let password = redis.unlock_password.as_ref();
    Some(with_account(login, password.map(|_| user), password))
}

fn with_account(
    mut login: RedisConnectionInfo,
    user: Option<&str>,
    password: Option<&SecretString>,
) -> RedisConnectionInfo {
    if let Some(user) = user {
        login = login.set_username(user);
    }
    if let Some(password) = password {
        login = login.set_password(password.expose_secret());
    }
    login
}

fn parse_urls(redis: &RedisConfig) -> Result<Vec<ConnectionInfo>, BackendError> {
    if redis.patterns.iter().all(String::is_empty) {
        return Err(misconfigured(
            "`patterns` is empty".to_owned(),
            "List the keys that are locks, e.g. patterns = [\"lock:*\"].".to_owned(),
        ));
    }
    if redis.urls.is_empty() {
        return Err(misconfigured(
            "`urls` is empty".to_owned(),
            "Name the server, e.g. urls = [\"redis://host:6379\"].".to_owned(),
        ));
    }
    redis.urls.iter().map(|url| parsed(url, "urls")).collect()
}

fn parsed(url: &SecretString, key: &str) -> Result<ConnectionInfo, BackendError> {
    let parsed = ::redis::parse_redis_url(url.expose_secret());
    parsed.and_then(|url| url.into_connection_info().ok()).ok_or_else(|| {
        misconfigured(
            format!("`{key}` holds no address of a Redis server"),
            "Write redis://user:password@host:port/database (or rediss:// for TLS), with special characters in the \
             password percent-encoded, or give the password as `password_file`."
                .to_owned(),
        )
    })
}

/// Enables TLS if the URL or a file requires it.
fn resolve(addr: &ConnectionAddr, config: &BackendConfig) -> Result<Address, BackendError> {
    let tls = &config.tls;
    let (host, port, insecure) = match addr {
        ConnectionAddr::TcpTls {
            host, port, insecure, ..
        } => (host, *port, *insecure),
        ConnectionAddr::Tcp(host, port) if tls.is_configured() => (host, *port, false),
        ConnectionAddr::Tcp(host, port) => {
            return Ok(Address::Tcp {
                host: host.clone(),
                port: *port,
                tls: None,
            });
        }
        ConnectionAddr::Unix(path) => return Ok(Address::Unix(path.clone())),
        _ => {
            return Err(misconfigured(
                "`urls` names a transport that is not supported".to_owned(),
                "Use redis://, rediss:// or unix://.".to_owned(),
            ));
        }
    };
    if insecure {
        return Err(misconfigured(
            "`urls` requests TLS without verification (#insecure)".to_owned(),
            "Name the authority with `ca_file`, and the certificate's host with `server_name` where it differs."
                .to_owned(),
        ));
    }
    Ok(Address::Tcp {
        host: host.clone(),
        port,
        tls: Some(TlsSettings::new(tls)?.for_host(host)?),
    })
}

/// For display: without user and password.
fn address(server: &Address, database: i64) -> String {
    match server {
        Address::Tcp { tls, .. } => {
            let scheme = if tls.is_some() { "rediss" } else { "redis" };
            format!("{scheme}://{}/{database}", name(server))
        }
        Address::Unix(path) => format!("unix:{}?db={database}", path.display()),
    }
}

fn name(server: &Address) -> String {
    match server {
        Address::Tcp { host, port, .. } if host.contains(':') => format!("[{host}]:{port}"),
        Address::Tcp { host, port, .. } => format!("{host}:{port}"),
        Address::Unix(path) => path.display().to_string(),
    }
}
