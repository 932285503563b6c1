//! Connection settings: turns the configuration into a client, and names invalid keys.
//!
//! Errors never contain a URL: it may have a password.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ::redis::{
    AsyncConnectionConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion,
    RedisConnectionInfo, RedisError,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use secrecy::{ExposeSecret, SecretString};

use super::connect::{self, Address, Connection, Tls};
use crate::BackendError;
use config::redis::{RedisConfig, RedisMode};
use config::{BackendConfig, tls::TlsConfig};

/// One server, with everything needed to log in.
pub(super) struct Target {
    server: Address,
    login: RedisConnectionInfo,
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
        Self::from_parts(info, login, config)
    }

    /// Account of forced unlocks; `None` if not configured. `user` and `password` are the other
    /// account's.
    pub(super) fn for_unlocks(
        config: &BackendConfig,
        redis: &RedisConfig,
    ) -> Result<Option<Self>, BackendError> {
        let Some(url) = &redis.unlock_url else {
            return Ok(None);
        };
        let info = parsed(url, "unlock_url")?;
        let login = info.redis_settings().clone();
        Self::from_parts(info, login, config).map(Some)
    }

    fn from_parts(
        info: ConnectionInfo,
        login: RedisConnectionInfo,
        config: &BackendConfig,
    ) -> Result<Self, BackendError> {
        // Sending the library's name would need one more permission, and its refusal would fill
        // the server's ACL LOG.
        let login = login.set_skip_set_lib_name();
        let database = login.db();
        let server = with_tls(info.addr(), &config.tls)?;
        Ok(Self {
            address: address(&server, database),
            tls: matches!(server, Address::Tcp { tls: Some(_), .. }),
            server,
            login,
            database,
            timeout: config.timeout,
        })
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
            "List the keys that are locks, e.g. patterns = [\"lock:*\"].".to_owned(),
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

/// Enables TLS if the URL or a file requires it.
fn with_tls(addr: &ConnectionAddr, tls: &TlsConfig) -> Result<Address, BackendError> {
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
    let verified = tls.server_name.as_ref().unwrap_or(host);
    let name = ServerName::try_from(verified.clone()).map_err(|_| {
        misconfigured(
            format!("{verified:?} is not a name that a certificate can have"),
            "Check `server_name`, or the host in `urls`.".to_owned(),
        )
    })?;
    Ok(Address::Tcp {
        host: host.clone(),
        port,
        tls: Some(Tls {
            config: Arc::new(client_config(tls)?),
            name,
        }),
    })
}

const FILES: &str = "Check `ca_file`, `cert_file` and `key_file`: PEM files that this process may read.";

fn client_config(tls: &TlsConfig) -> Result<ClientConfig, BackendError> {
    let unusable =
        |key: &str, why: String| misconfigured(format!("`{key}` is unusable: {why}"), FILES.to_owned());
    let mut roots = RootCertStore::empty();
    match &tls.ca_file {
        Some(path) => {
            for cert in certificates("ca_file", path)? {
                roots
                    .add(cert)
                    .map_err(|error| unusable("ca_file", error.to_string()))?;
            }
        }
        // Without system certificates each handshake fails with its own error.
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable("ca_file", error.to_string()))?
        .with_root_certificates(roots);
    match (&tls.cert_file, &tls.key_file) {
        (Some(cert), Some(key)) => {
            let chain = certificates("cert_file", cert)?;
            let key = PrivateKeyDer::from_pem_slice(&read("key_file", key)?)
                .map_err(|error| unusable("key_file", error.to_string()))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| unusable("cert_file", error.to_string()))
        }
        (None, None) => Ok(builder.with_no_client_auth()),
        _ => Err(misconfigured(
            "`cert_file` and `key_file` belong together, and only one is set".to_owned(),
            FILES.to_owned(),
        )),
    }
}

fn certificates(key: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, BackendError> {
    let pem = read(key, path)?;
    let certs: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    match certs {
        Ok(certs) if !certs.is_empty() => Ok(certs),
        Ok(_) | Err(_) => Err(misconfigured(
            format!("`{key}` {} holds no certificate in PEM form", path.display()),
            FILES.to_owned(),
        )),
    }
}

fn read(key: &str, path: &Path) -> Result<Vec<u8>, BackendError> {
    std::fs::read(path).map_err(|error| {
        misconfigured(
            format!("`{key}` {} cannot be read: {error}", path.display()),
            "Check the path, and that this process may read the file.".to_owned(),
        )
    })
}

/// For display: without user and password.
fn address(server: &Address, database: i64) -> String {
    match server {
        Address::Tcp { host, port, tls } => {
            let scheme = if tls.is_some() { "rediss" } else { "redis" };
            format!("{scheme}://{}:{port}/{database}", bracketed(host))
        }
        Address::Unix(path) => format!("unix:{}?db={database}", path.display()),
    }
}

fn bracketed(host: &str) -> String {
    if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    }
}

fn misconfigured(detail: String, remedy: String) -> BackendError {
    BackendError::Misconfigured { detail, remedy }
}
