//! A throwaway Postgres: its own cluster, TCP on loopback only, no Unix socket, no schema.

mod cluster;
mod control_file;
mod template;

use std::{io, net::Ipv4Addr, ops::Deref};

use rustix::process::Signal;
use sqlx::{
    Connection,
    postgres::{PgConnectOptions, PgConnection, PgSslMode},
};

use super::{
    StartError, Tls, address, binaries,
    server::Server,
    server_spec::{Plan, Probe},
    temp_dir::Folder,
};

const WHAT: &str = "Postgres";
const INSTALL: &str = "apt-get install -y postgresql";
const SUPERUSER: &str = "postgres";

#[derive(Debug, Clone, Default)]
pub struct PostgresOptions {
    /// For tests: `fsync` and `full_page_writes` off. A commit still survives [`Server::kill`], not a power cut.
    pub fast: bool,
    /// The superuser's password. If given, every connection needs a password (SCRAM); otherwise none does.
    pub password: Option<String>,
    /// Accepts TLS in addition to plain text on the same port.
    pub tls: Option<Tls>,
    /// More settings, e.g. `("max_connections", "20")`.
    pub settings: Vec<(String, String)>,
}

/// A running Postgres; see [`Server`] for its faults. The superuser is `postgres`, and so is the only database.
#[derive(Debug)]
pub struct Postgres {
    server: Server,
    port: u16,
    password: Option<String>,
}

impl Postgres {
    pub(super) async fn start(options: PostgresOptions) -> Result<Self, StartError> {
        let program = binaries::find("postgres", INSTALL)?;
        let folder = Folder::of_server(WHAT, "postgres", "QUIT")?;
        cluster::create(&folder, options.password.as_deref()).await?;
        let plan = |folder: &Folder, [port]: [u16; 1]| {
            Ok(Plan {
                program: program.clone(),
                args: arguments(&options, folder, port)?,
                // A standby accepts "read-only connections".
                marker: "database system is ready to accept",
                probe: Probe::Postgres(Box::new(superuser(port, options.password.as_deref()))),
                stop: Signal::INT,
                end: Signal::QUIT,
            })
        };
        let (server, [port]) = Server::start(WHAT, folder, plan).await?;
        Ok(Self {
            server,
            port,
            password: options.password,
        })
    }

    /// On 127.0.0.1; the same for its whole life.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `postgres://user@127.0.0.1:port/db`; the role and the database are the caller's to create. Append `?sslmode=…`
    /// to insist on TLS or on plain text.
    pub fn url(&self, user: &str, db: &str) -> String {
        address::url("postgres", (user, None), self.port, db)
    }

    /// As [`url`](Self::url), with a password.
    pub fn url_with_password(&self, user: &str, password: &str, db: &str) -> String {
        address::url("postgres", (user, Some(password)), self.port, db)
    }

    /// The superuser's, to database `postgres`, with the password if there is one.
    pub fn superuser_url(&self) -> String {
        address::url(
            "postgres",
            (SUPERUSER, self.password.as_deref()),
            self.port,
            SUPERUSER,
        )
    }

    /// The superuser's, to another database.
    pub fn superuser_url_to(&self, db: &str) -> String {
        address::url("postgres", (SUPERUSER, self.password.as_deref()), self.port, db)
    }
}

impl Deref for Postgres {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

fn arguments(options: &PostgresOptions, folder: &Folder, port: u16) -> io::Result<Vec<String>> {
    let mut settings = vec![
        ("listen_addresses", Ipv4Addr::LOCALHOST.to_string()),
        ("port", port.to_string()),
        ("unix_socket_directories", String::new()),
        ("max_connections", "200".to_owned()),
        // In the server's folder instead of /dev/shm, where a killed server would leave it.
        ("dynamic_shared_memory_type", "mmap".to_owned()),
    ];
    if options.fast {
        settings.push(("fsync", "off".to_owned()));
        settings.push(("full_page_writes", "off".to_owned()));
    }
    if let Some(tls) = &options.tls {
        let tls = tls.install(folder)?;
        settings.push(("ssl", "on".to_owned()));
        settings.push(("ssl_cert_file", tls.cert));
        settings.push(("ssl_key_file", tls.key));
        settings.extend(tls.client_ca.map(|ca| ("ssl_ca_file", ca)));
    }
    settings.extend(
        options
            .settings
            .iter()
            .map(|(name, value)| (name.as_str(), value.clone())),
    );
    let data = ["-D".to_owned(), "data".to_owned()];
    let settings = settings
        .into_iter()
        .flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")]);
    Ok(data.into_iter().chain(settings).collect())
}

fn superuser(port: u16, password: Option<&str>) -> PgConnectOptions {
    let options = PgConnectOptions::new_without_pgpass()
        .host(&Ipv4Addr::LOCALHOST.to_string())
        .port(port)
        .username(SUPERUSER)
        .database(SUPERUSER)
        .ssl_mode(PgSslMode::Disable);
    match password {
        Some(password) => options.password(password),
        None => options,
    }
}

/// One round trip as the superuser.
pub(super) async fn check_ready(options: &PgConnectOptions) -> Result<(), String> {
    let connected = PgConnection::connect_with(options).await;
    let mut connection = connected.map_err(|error| error.to_string())?;
    connection.ping().await.map_err(|error| error.to_string())?;
    connection.close().await.map_err(|error| error.to_string())
}
