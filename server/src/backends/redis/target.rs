//! Where to connect and as whom: turns the configuration into a client, and says what is wrong with it by key.
//!
//! Never repeats a URL in an error: it may hold a password.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use ::redis::io::AsyncDNSResolver;
use ::redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo,
    ProtocolVersion, RedisConnectionInfo, RedisFuture, TlsCertificates,
};
use secrecy::{ExposeSecret, SecretString};

use crate::backends::BackendError;
use crate::config::redis::{RedisConfig, RedisMode};
use crate::config::{BackendConfig, tls::TlsConfig};

/// One server, with everything needed to log in.
pub(super) struct Target {
    client: Client,
    /// The same with RESP3, in which one connection both subscribes and answers.
    pushing: Client,
    /// The host to connect to, where the certificate names another one.
    host: Option<String>,
    pub(super) address: String,
    pub(super) tls: bool,
    pub(super) database: i64,
    pub(super) timeout: Duration,
}

impl Target {
    pub(super) fn new(config: &BackendConfig, redis: &RedisConfig) -> Result<Self, BackendError> {
        let info = standalone(redis)?;
        let mut login = info.redis_settings().clone();
        if let Some(user) = &config.user {
            login = login.set_username(user);
        }
        if let Some(password) = &config.password {
            login = login.set_password(password.expose_secret());
        }
        Self::of(info, login, config)
    }

    /// Where forced unlocks log in; none where that is not configured. `user` and `password` are the other account's.
    pub(super) fn for_unlocks(
        config: &BackendConfig,
        redis: &RedisConfig,
    ) -> Result<Option<Self>, BackendError> {
        let Some(url) = &redis.unlock_url else {
            return Ok(None);
        };
        let info = parsed(url, "unlock_url")?;
        let login = info.redis_settings().clone();
        Self::of(info, login, config).map(Some)
    }

    fn of(
        info: ConnectionInfo,
        login: RedisConnectionInfo,
        config: &BackendConfig,
    ) -> Result<Self, BackendError> {
        // Naming our library would need one more right, and its refusal would fill the server's ACL LOG.
        let login = login.set_skip_set_lib_name();
        let database = login.db();
        let address = address(info.addr(), database);
        let (info, host) = with_tls(info, &config.tls)?;
        let tls = matches!(info.addr(), ConnectionAddr::TcpTls { .. });
        let address = if tls {
            address.replacen("redis://", "rediss://", 1)
        } else {
            address
        };
        let client = |protocol| {
            let info = info
                .clone()
                .set_redis_settings(login.clone().set_protocol(protocol));
            open(info, &config.tls)
        };
        Ok(Self {
            client: client(ProtocolVersion::RESP2)?,
            pushing: client(ProtocolVersion::RESP3)?,
            host,
            address,
            tls,
            database,
            timeout: config.timeout,
        })
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn pushing(&self) -> &Client {
        &self.pushing
    }

    /// Bounded waits, and the right host where the certificate names another.
    pub(super) fn settings(&self) -> AsyncConnectionConfig {
        let settings = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.timeout))
            .set_response_timeout(Some(self.timeout));
        match &self.host {
            Some(host) => settings.set_dns_resolver(Instead(host.clone())),
            None => settings,
        }
    }
}

fn standalone(redis: &RedisConfig) -> Result<ConnectionInfo, BackendError> {
    let mode = match redis.mode {
        RedisMode::Standalone => None,
        RedisMode::Cluster => Some("cluster"),
        RedisMode::Sentinel => Some("sentinel"),
        RedisMode::Redlock => Some("redlock"),
    };
    if let Some(mode) = mode {
        return Err(misconfigured(
            format!("`mode = \"{mode}\"` is not supported yet"),
            format!("mode {mode} is not supported yet; use standalone"),
        ));
    }
    let [url] = redis.urls.as_slice() else {
        return Err(misconfigured(
            format!(
                "`urls` has {} addresses, and mode standalone takes one",
                redis.urls.len()
            ),
            "Give one address in `urls`, or one [[backend]] per server.".to_owned(),
        ));
    };
    if redis.patterns.iter().all(String::is_empty) {
        return Err(misconfigured(
            "`patterns` is empty".to_owned(),
            "Say which keys are locks, e.g. patterns = [\"lock:*\"].".to_owned(),
        ));
    }
    parsed(url, "urls")
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

/// Turns TLS on where a file asks for it, and the certificate's name into the host to be verified.
fn with_tls(info: ConnectionInfo, tls: &TlsConfig) -> Result<(ConnectionInfo, Option<String>), BackendError> {
    let (host, port, insecure) = match info.addr() {
        ConnectionAddr::TcpTls {
            host, port, insecure, ..
        } => (host.clone(), *port, *insecure),
        ConnectionAddr::Tcp(host, port) if tls.is_configured() => (host.clone(), *port, false),
        _ => return Ok((info, None)),
    };
    if insecure {
        return Err(misconfigured(
            "`urls` asks for TLS without verification (#insecure)".to_owned(),
            "Name the authority with `ca_file`, and the certificate's host with `server_name` where it differs."
                .to_owned(),
        ));
    }
    let (verified, dialled) = match &tls.server_name {
        Some(name) if *name != host => (name.clone(), Some(host)),
        _ => (host, None),
    };
    let addr = ConnectionAddr::TcpTls {
        host: verified,
        port,
        insecure: false,
        tls_params: None,
    };
    Ok((info.set_addr(addr), dialled))
}

fn open(info: ConnectionInfo, tls: &TlsConfig) -> Result<Client, BackendError> {
    let files = "Check `ca_file`, `cert_file` and `key_file`: PEM files that this process may read.";
    let refused = |_| {
        misconfigured(
            "the address or the TLS files are unusable".to_owned(),
            files.to_owned(),
        )
    };
    if !matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
        return Client::open(info).map_err(refused);
    }
    let client_tls = match (&tls.cert_file, &tls.key_file) {
        (Some(cert), Some(key)) => Some(ClientTlsConfig {
            client_cert: read("cert_file", cert)?,
            client_key: read("key_file", key)?,
        }),
        (None, None) => None,
        _ => {
            return Err(misconfigured(
                "`cert_file` and `key_file` belong together, and only one is set".to_owned(),
                files.to_owned(),
            ));
        }
    };
    let root_cert = tls
        .ca_file
        .as_deref()
        .map(|path| read("ca_file", path))
        .transpose()?;
    Client::build_with_tls(
        info,
        TlsCertificates {
            client_tls,
            root_cert,
        },
    )
    .map_err(refused)
}

fn read(key: &str, path: &Path) -> Result<Vec<u8>, BackendError> {
    std::fs::read(path).map_err(|error| {
        misconfigured(
            format!("`{key}` {} cannot be read: {error}", path.display()),
            "Check the path, and that this process may read the file.".to_owned(),
        )
    })
}

/// For people: no user, no password.
fn address(addr: &ConnectionAddr, database: i64) -> String {
    match addr {
        ConnectionAddr::Tcp(host, port) => format!("redis://{}:{port}/{database}", bracketed(host)),
        ConnectionAddr::TcpTls { host, port, .. } => {
            format!("rediss://{}:{port}/{database}", bracketed(host))
        }
        ConnectionAddr::Unix(path) => format!("unix:{}?db={database}", path.display()),
        _ => "redis".to_owned(),
    }
}

fn bracketed(host: &str) -> String {
    if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    }
}

fn misconfigured(detail: String, mend: String) -> BackendError {
    BackendError::Misconfigured { detail, mend }
}

/// Resolves one host whatever it is asked for: the asked one is only what the certificate must say.
struct Instead(String);

impl AsyncDNSResolver for Instead {
    fn resolve<'a, 'b: 'a>(
        &'a self,
        _host: &'b str,
        port: u16,
    ) -> RedisFuture<'a, Box<dyn Iterator<Item = SocketAddr> + Send + 'a>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((self.0.as_str(), port)).await?;
            Ok(Box::new(found.collect::<Vec<_>>().into_iter())
                as Box<dyn Iterator<Item = SocketAddr> + Send + 'a>)
        })
    }
}
