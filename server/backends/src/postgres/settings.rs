//! Session settings: address, account, TLS, and the parameters that make each session harmless.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use secrecy::ExposeSecret;
use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use url::Url;

use crate::BackendError;
use config::BackendConfig;
use config::postgres::{PoolerAddress, PostgresConfig, QueryText};

/// Application name of our sessions in `pg_stat_activity`.
pub(super) const APPLICATION_NAME: &str = "leasehold";
/// Application name of forced unlocks.
const UNLOCK_APPLICATION_NAME: &str = "leasehold-unlock";
/// URL parameters that the driver accepts.
const PARAMETERS: [&str; 18] = [
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-root-cert",
    "ssl-ca",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "statement-cache-capacity",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
];
/// Longest wait of a statement for a lock of another session.
const LOCK_TIMEOUT_MAX: Duration = Duration::from_millis(200);

/// Everything needed to open a session.
#[derive(Clone)]
pub(super) struct PostgresSettings {
    pub(super) options: PgConnectOptions,
    /// The name expected in the server's certificate, if it is not the host's.
    pub(super) server_name: Option<String>,
    /// For display: host, port and database.
    pub(super) address: String,
    /// Timeout of one response.
    pub(super) timeout: Duration,
    pub(super) query_text: QueryText,
    pub(super) poolers: Arc<[PoolerAddress]>,
}

impl fmt::Debug for PostgresSettings {
    /// The driver's own Debug would print the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

pub(super) fn read(
    config: &BackendConfig,
    postgres: &PostgresConfig,
) -> Result<PostgresSettings, BackendError> {
    let url = known_parameters(parse(postgres.url.expose_secret())?);
    let host = host_of(&url);
    let mut options = PgConnectOptions::from_url(&url).map_err(|_| not_a_url())?;
    if let Some(user) = &config.user {
        options = options.username(user);
    }
    if let Some(password) = &config.password {
        options = options.password(password.expose_secret());
    }
    options = read_only_options(with_tls(options, config, &url)?, config.timeout);
    let database = options
        .get_database()
        .unwrap_or(options.get_username())
        .to_owned();
    let server_name = config
        .tls
        .server_name
        .clone()
        .filter(|name| *name != options.get_host());
    let address = format!("{host}:{}/{database}", options.get_port());
    Ok(PostgresSettings {
        options,
        server_name,
        address,
        timeout: config.timeout,
        query_text: postgres.query_text,
        poolers: postgres.poolers.as_slice().into(),
    })
}

/// Sessions of forced unlocks; `None` if not configured. `user` and `password` are those of the
/// watching account.
pub(super) fn for_unlocks(
    config: &BackendConfig,
    postgres: &PostgresConfig,
) -> Result<Option<PostgresSettings>, BackendError> {
    let Some(url) = &postgres.unlock_url else {
        return Ok(None);
    };
    let unlock_config = PostgresConfig {
        url: url.clone(),
        ..postgres.clone()
    };
    let config = BackendConfig {
        user: None,
        password: None,
        ..config.clone()
    };
    let mut settings = read(&config, &unlock_config)?;
    let lock_timeout = (config.timeout / 2).as_millis().max(10).to_string();
    settings.options = settings
        .options
        .application_name(UNLOCK_APPLICATION_NAME)
        .options([
            ("default_transaction_read_only", "off".to_owned()),
            // The holder itself may lock the row for a while.
            ("lock_timeout", lock_timeout),
        ]);
    Ok(Some(settings))
}

fn parse(text: &str) -> Result<Url, BackendError> {
    let url = Url::parse(text).map_err(|_| not_a_url())?;
    if matches!(url.scheme(), "postgres" | "postgresql") {
        Ok(url)
    } else {
        Err(not_a_url())
    }
}

/// Removes unknown parameters. The driver would log them with their values, and a mistyped
/// `password` is a secret too.
fn known_parameters(mut url: Url) -> Url {
    let (known, strange): (Vec<_>, Vec<_>) = url
        .query_pairs()
        .into_owned()
        .partition(|(name, _)| PARAMETERS.contains(&name.as_str()) || name.starts_with("options["));
    for (name, _) in &strange {
        tracing::warn!(
            "the parameter `{}` in a Postgres `url` is ignored",
            domain::escape::visible(name)
        );
    }
    url.set_query(None);
    if !known.is_empty() {
        url.query_pairs_mut().extend_pairs(known);
    }
    url
}

fn not_a_url() -> BackendError {
    BackendError::Misconfigured {
        detail: "`url` is not the address of a Postgres database".to_owned(),
        remedy: "Write `url` as postgres://user@host:port/database; special characters in a password as %xx."
            .to_owned(),
    }
}

fn host_of(url: &Url) -> String {
    let parameter = |name: &str| {
        url.query_pairs()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.into_owned())
    };
    parameter("host")
        .or_else(|| parameter("hostaddr"))
        .or_else(|| url.host_str().filter(|host| !host.is_empty()).map(str::to_owned))
        .unwrap_or_else(|| "localhost".to_owned())
}

/// Configured files or a server name require certificate verification, unless the URL specifies
/// the mode.
fn with_tls(
    mut options: PgConnectOptions,
    config: &BackendConfig,
    url: &Url,
) -> Result<PgConnectOptions, BackendError> {
    let tls = &config.tls;
    let parameter = url
        .query_pairs()
        .any(|(key, _)| key == "sslmode" || key == "ssl-mode");
    if let Some(file) = &tls.ca_file {
        options = options.ssl_root_cert(file);
    }
    match (&tls.cert_file, &tls.key_file) {
        (Some(cert), Some(key)) => options = options.ssl_client_cert(cert).ssl_client_key(key),
        (None, None) => {}
        _ => {
            return Err(BackendError::Misconfigured {
                detail: "`cert_file` and `key_file` belong together".to_owned(),
                remedy: "Set both, or neither.".to_owned(),
            });
        }
    }
    let mode = match options.get_ssl_mode() {
        _ if !parameter && tls.is_configured() => PgSslMode::VerifyFull,
        // As libpq does: a configured authority implies verification.
        PgSslMode::Require if tls.server_name.is_some() => PgSslMode::VerifyFull,
        PgSslMode::Require if tls.ca_file.is_some() => PgSslMode::VerifyCa,
        mode => mode,
    };
    Ok(options.ssl_mode(mode))
}

/// The server enforces the timeout and refuses writes, whatever this code does wrong.
fn read_only_options(options: PgConnectOptions, timeout: Duration) -> PgConnectOptions {
    let milliseconds = |time: Duration| time.as_millis().max(10).to_string();
    options.application_name(APPLICATION_NAME).options([
        ("default_transaction_read_only", "on".to_owned()),
        // Before our own timeout, so that the server's error arrives.
        ("statement_timeout", milliseconds(timeout * 4 / 5)),
        ("lock_timeout", milliseconds(lock_timeout(timeout))),
        ("idle_in_transaction_session_timeout", milliseconds(timeout * 2)),
    ])
}

pub(super) fn lock_timeout(timeout: Duration) -> Duration {
    LOCK_TIMEOUT_MAX.min(timeout / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_parameters_are_removed_before_the_driver_logs_them() {
        // A mistyped password, a libpq-only parameter, and valid parameters.
        let url =
            parse("postgres://u@h/db?pasword=hunter2&connect_timeout=3&sslmode=require&options[x]=a%26b");
        let filtered = known_parameters(url.unwrap());
        assert_eq!(filtered.query(), Some("sslmode=require&options%5Bx%5D=a%26b"));
        assert_eq!(
            known_parameters(parse("postgres://u@h/db?x=1").unwrap()).as_str(),
            "postgres://u@h/db"
        );
    }
}
