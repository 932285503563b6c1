//! A throwaway PgBouncer in front of a throwaway Postgres, on loopback, without passwords.

use std::{net::Ipv4Addr, ops::Deref};

use rustix::process::Signal;
use sqlx::postgres::{PgConnectOptions, PgSslMode};

use super::{
    StartError, address, binaries,
    server::Server,
    server_spec::{Plan, Probe},
    temp_dir::Folder,
};

const WHAT: &str = "PgBouncer";
const PROGRAM: &str = "pgbouncer";
const INSTALL: &str = "apt-get install -y --no-install-recommends pgbouncer";
const SUPERUSER: &str = "postgres";

#[derive(Debug, Clone)]
pub struct PgbouncerOptions {
    /// The port of the Postgres behind it, which needs no password.
    pub postgres_port: u16,
    /// `session`, `transaction` or `statement`.
    pub pool_mode: &'static str,
    /// Sessions of each database.
    pub pool_size: u32,
}

/// A running PgBouncer; see [`Server`] for its faults. Every client becomes the superuser.
#[derive(Debug)]
pub struct Pgbouncer {
    server: Server,
    port: u16,
}

impl Pgbouncer {
    pub(super) async fn start(options: PgbouncerOptions) -> Result<Self, StartError> {
        let program = binaries::find(PROGRAM, INSTALL)?;
        let folder = Folder::of_server(WHAT, PROGRAM, "KILL")?;
        let plan = |folder: &Folder, [port]: [u16; 1]| {
            let config = folder.write_private("pgbouncer.ini", configuration(&options, port).as_bytes())?;
            Ok(Plan {
                program: program.clone(),
                args: vec![config.display().to_string()],
                marker: "process up",
                probe: Probe::Postgres(Box::new(client(port))),
                stop: Signal::TERM,
                end: Signal::KILL,
            })
        };
        let (server, [port]) = Server::start(WHAT, folder, plan).await?;
        Ok(Self { server, port })
    }

    /// `postgres://postgres@127.0.0.1:port/db`; the same for its whole life.
    pub fn url(&self, db: &str) -> String {
        address::url("postgres", (SUPERUSER, None), self.port, db)
    }
}

impl Deref for Pgbouncer {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

fn configuration(options: &PgbouncerOptions, port: u16) -> String {
    let PgbouncerOptions {
        postgres_port,
        pool_mode,
        pool_size,
    } = options;
    format!(
        "[databases]\n\
         * = host=127.0.0.1 port={postgres_port} user={SUPERUSER}\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         listen_port = {port}\n\
         unix_socket_dir =\n\
         auth_type = any\n\
         pool_mode = {pool_mode}\n\
         default_pool_size = {pool_size}\n\
         ignore_startup_parameters = extra_float_digits, options\n"
    )
}

fn client(port: u16) -> PgConnectOptions {
    PgConnectOptions::new_without_pgpass()
        .host(&Ipv4Addr::LOCALHOST.to_string())
        .port(port)
        .username(SUPERUSER)
        .database(SUPERUSER)
        .ssl_mode(PgSslMode::Disable)
}
