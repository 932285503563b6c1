//! Accounts and tables of the demo's database, created by the superuser.

use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

use super::{APP_ROLE, DATABASE, UNLOCK_ROLE, WATCH_ROLE};
use crate::fault::WorkloadError;
use testkit::Postgres;

/// `distributed_locks` has the common shape. Its tokens come from a counter per resource that outlives the lease, so
/// that they increase across a release, which deletes the row. `shedlock` and `databasechangeloglock` are as in the
/// documentation of those tools; `invoices` is for the blocked sessions.
const TABLES: &str = "
CREATE TABLE distributed_locks (
    resource text PRIMARY KEY,
    owner_id text NOT NULL,
    lease_id text NOT NULL,
    fencing_token bigint NOT NULL,
    expires_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
CREATE TABLE fencing_counters (
    resource text PRIMARY KEY,
    fencing_token bigint NOT NULL
);
CREATE TABLE shedlock (
    name varchar(64) PRIMARY KEY,
    lock_until timestamp NOT NULL,
    locked_at timestamp NOT NULL,
    locked_by varchar(255) NOT NULL
);
CREATE TABLE databasechangeloglock (
    id int PRIMARY KEY,
    locked boolean NOT NULL,
    lockgranted timestamp,
    lockedby varchar(255)
);
INSERT INTO databasechangeloglock (id, locked) VALUES (1, false);
CREATE TABLE invoices (
    id int PRIMARY KEY,
    tenant text NOT NULL,
    state text NOT NULL
);
INSERT INTO invoices SELECT n, 'tenant_123', 'open' FROM generate_series(1, 20) AS n;
";

/// The trigger of docs/backends/postgres.md: changes are shown immediately.
pub(crate) const CHANNEL: &str = "leasehold_locks";
const ANNOUNCE: &str = "
CREATE FUNCTION leasehold_announce() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE name text := CASE WHEN TG_OP = 'DELETE' THEN OLD.resource ELSE NEW.resource END;
BEGIN
    PERFORM pg_notify('leasehold_locks', name);
    RETURN NULL;
END $$;
CREATE TRIGGER leasehold_announce AFTER INSERT OR UPDATE OR DELETE ON distributed_locks
    FOR EACH ROW EXECUTE FUNCTION leasehold_announce();
";

const GRANTS: &str = "
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO orders_app;
GRANT pg_monitor TO leasehold_watch;
GRANT SELECT ON distributed_locks, shedlock, databasechangeloglock TO leasehold_watch;
GRANT pg_signal_backend, pg_read_all_stats TO leasehold_unlock;
GRANT SELECT, DELETE ON distributed_locks TO leasehold_unlock;
GRANT SELECT, UPDATE (lock_until) ON shedlock TO leasehold_unlock;
GRANT SELECT, UPDATE (locked, lockgranted, lockedby) ON databasechangeloglock TO leasehold_unlock;
";

pub(crate) struct Passwords {
    pub(crate) app: String,
    pub(crate) watch: String,
    pub(crate) unlock: String,
}

pub(crate) async fn create(server: &Postgres, passwords: &Passwords) -> Result<(), WorkloadError> {
    let mut root = PgConnection::connect(&server.superuser_url()).await?;
    // The passwords are hex digits and need no escaping.
    let accounts = format!(
        "CREATE ROLE {APP_ROLE} LOGIN PASSWORD '{}'; CREATE ROLE {WATCH_ROLE} LOGIN PASSWORD '{}'; \
         CREATE ROLE {UNLOCK_ROLE} LOGIN PASSWORD '{}';",
        passwords.app, passwords.watch, passwords.unlock
    );
    root.execute(sqlx::raw_sql(AssertSqlSafe(accounts))).await?;
    root.execute(sqlx::raw_sql(AssertSqlSafe(format!(
        "CREATE DATABASE {DATABASE}"
    ))))
    .await?;
    root.close().await?;
    let mut orders = PgConnection::connect(&server.superuser_url_to(DATABASE)).await?;
    super::run(&mut orders, TABLES).await?;
    super::run(&mut orders, ANNOUNCE).await?;
    super::run(&mut orders, GRANTS).await?;
    Ok(orders.close().await?)
}
