//! The demo's database `orders`: accounts, schema, and the workload that holds locks in it.

pub(super) mod advisory;
pub(super) mod changelog;
pub(super) mod leases;
pub(super) mod prepared;
pub(super) mod rows;
pub(super) mod schema;
pub(super) mod shedlock;

use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions as _, Connection, Executor};

use super::fault::WorkloadError;
use testkit::Postgres;

pub(super) const DATABASE: &str = "orders";
/// The account of the workload.
pub(super) const APP_ROLE: &str = "orders_app";
/// The console's account: `pg_monitor` and `SELECT` on the displayed tables, nothing else.
pub(super) const WATCH_ROLE: &str = "leasehold_watch";
pub(super) const UNLOCK_ROLE: &str = "leasehold_unlock";

/// Access of the workload to the database.
#[derive(Clone)]
pub(super) struct Access {
    options: PgConnectOptions,
}

impl Access {
    pub(super) fn new(server: &Postgres, password: &str) -> Result<Self, WorkloadError> {
        let url = server.url_with_password(APP_ROLE, password, DATABASE);
        let options: PgConnectOptions = url.parse()?;
        // No timeout: waiting for locks is the purpose of the workload.
        Ok(Self {
            options: options.disable_statement_logging(),
        })
    }

    /// A session of its own: its locks end with it.
    pub(super) async fn session(&self, application_name: &str) -> Result<PgConnection, WorkloadError> {
        let options = self.options.clone().application_name(application_name);
        Ok(PgConnection::connect_with(&options).await?)
    }

    /// For the short statements of lease clients. Connects on first use.
    pub(super) fn pool(&self) -> PgPool {
        let options = self.options.clone().application_name("orders-workers");
        PgPoolOptions::new()
            .max_connections(4)
            .acquire_timeout(std::time::Duration::from_secs(3))
            .connect_lazy_with(options)
    }
}

/// Several statements without parameters.
pub(super) async fn run(session: &mut PgConnection, statements: &'static str) -> Result<(), WorkloadError> {
    session.execute(sqlx::raw_sql(statements)).await?;
    Ok(())
}
