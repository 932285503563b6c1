//! Opening a Postgres store: statement timeouts, a check for durable commits, refusal of a
//! rewound store.

use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::lease::limits::EPOCH_STEP;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions};
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::sync::Mutex;

use super::super::moved::{moved_to, refuse_moved};
use super::apply::ConflictBackoff;
use super::epoch::{identify, is_behind, raise_epoch_once};
use super::monotonic_clock::{MonotonicClock, STEP_MS};
use super::shard::write_identity;
use super::{PostgresStore, sql};
use crate::error::LeaseOpenError;
use crate::shards::ShardIdentity;
use crate::store_inspection::{AuditRights, StoreInspection};
use runtime::clock::Clock;
use runtime::db::schema::{MigrationStatus, may_migrate_postgres};
use runtime::random;

const READERS_MAX: u32 = 4;
/// With two or more, one batch is prepared while another is synced, but batches become smaller,
/// and each costs as much as about twenty of its operations.
const MAIN_LANES: usize = 1;
const READ_TIMEOUT: Duration = Duration::from_millis(1_500);
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

impl PostgresStore {
    /// Opens a database that is no shard.
    ///
    /// # Errors
    /// See [`LeaseOpenError`].
    pub async fn open(url: &str, clock: Clock) -> Result<Self, LeaseOpenError> {
        Self::open_as(url, None, clock).await
    }

    /// Opens a database as one of the shards, with its address for messages.
    ///
    /// # Errors
    /// See [`LeaseOpenError`].
    pub(crate) async fn open_as(
        url: &str,
        identity: Option<(&ShardIdentity, &str)>,
        clock: Clock,
    ) -> Result<Self, LeaseOpenError> {
        let options = options(url)?;
        let mut first = tokio::time::timeout(OPEN_TIMEOUT, options.connect())
            .await
            .map_err(|_| LeaseOpenError::NoAnswer)?
            .map_err(LeaseOpenError::Store)?;
        require_durable_primary(&mut first).await?;
        // A migration may wait longer for a lock than a lease operation.
        let set_timeouts = "SET statement_timeout = '60s'; SET lock_timeout = '30s'";
        sqlx::raw_sql(set_timeouts)
            .execute(&mut first)
            .await
            .map_err(LeaseOpenError::Store)?;
        runtime::db::schema::migrate_postgres(&mut first)
            .await
            .map_err(LeaseOpenError::Migration)?;
        refuse_moved(&mut first).await?;
        write_identity(&mut first, identity).await?;
        let identity = identify(&mut first).await?;
        let stepped = sqlx::query(sql::STEPPED_BACK_BEFORE).bind(STEP_MS);
        stepped.execute(&mut first).await.map_err(LeaseOpenError::Store)?;
        refuse_rewound(&mut first).await?;
        let replica: Arc<str> = random::id().into();
        let heartbeat = sqlx::query(sql::HEARTBEAT).bind(&*replica);
        heartbeat
            .execute(&mut first)
            .await
            .map_err(LeaseOpenError::Store)?;
        // Again: a move that began meanwhile has not seen this server, and one that begins from now on does.
        if let Err(moved) = refuse_moved(&mut first).await {
            let leave = sqlx::query("DELETE FROM lease_replicas WHERE replica_id = $1").bind(&*replica);
            leave.execute(&mut first).await.map_err(LeaseOpenError::Store)?;
            return Err(moved);
        }
        // Each lane opens its connection on its own thread. A failed goodbye has no effect.
        let _ = first.close().await;
        let readers = PgPoolOptions::new()
            .max_connections(READERS_MAX)
            .acquire_timeout(READ_TIMEOUT)
            .connect_lazy_with(options.clone());
        Ok(Self {
            urgent: Mutex::new(None),
            main: (0..MAIN_LANES).map(|_| Mutex::new(None)).collect(),
            listener: Mutex::new(None),
            heartbeat: Mutex::new(None),
            janitor: Mutex::new(None),
            notices: parking_lot::Mutex::default(),
            notices_added: tokio::sync::Notify::new(),
            prune_cursors: parking_lot::Mutex::default(),
            readers,
            options,
            replica,
            identity,
            clock,
            monotonic: MonotonicClock::default(),
            backoff: ConflictBackoff::default(),
            cache: parking_lot::Mutex::default(),
            others: std::sync::atomic::AtomicBool::new(true),
            maintenance_runs: std::sync::atomic::AtomicU64::new(0),
        })
    }

    /// Opens a session. Refused if commits are not durable, or while the cluster is not the one
    /// that was opened, or lacks an epoch that it had, and its epoch has not been raised.
    pub(super) async fn connect(&self) -> Result<PgConnection, super::StoreError> {
        let mut connection = self.options.connect().await?;
        if let Some(why) = not_durable(&mut connection).await? {
            return Err(super::StoreError::NotDurable(why));
        }
        let identity: String = sqlx::query_scalar(sql::IDENTITY)
            .fetch_one(&mut connection)
            .await?;
        let known_floor = self.known_floor();
        if identity != self.identity || is_behind(&mut connection, known_floor).await? {
            // Reads all counters. If this call is cut off, the statement still runs, and the next session finds it done.
            let set_timeout = sqlx::raw_sql("SET statement_timeout = '60s'");
            set_timeout.execute(&mut connection).await?;
            raise_epoch_once(&mut connection, &identity, known_floor).await?;
            let reset_timeout = sqlx::raw_sql("RESET statement_timeout");
            reset_timeout.execute(&mut connection).await?;
        }
        Ok(connection)
    }
}

pub(super) fn options(url: &str) -> Result<PgConnectOptions, LeaseOpenError> {
    let options = PgConnectOptions::from_str(url).map_err(|_| LeaseOpenError::BadUrl)?;
    Ok(options
        .application_name("leasehold")
        .options([
            ("statement_timeout", "1500"),
            ("lock_timeout", "1000"),
            ("idle_in_transaction_session_timeout", "2500"),
            // A batch names its rows: a sequential scan is never right, whatever the planner's
            // statistics say.
            ("enable_seqscan", "off"),
            ("enable_hashjoin", "off"),
            ("enable_mergejoin", "off"),
            ("jit", "off"),
            // Read committed, whatever the database's default is: each statement, also inside of
            // save_lease_batch, must see earlier commits.
            ("default_transaction_isolation", "read committed"),
            // A few statements, executed again and again: planned once.
            ("plan_cache_mode", "force_generic_plan"),
        ])
        .disable_statement_logging())
}

/// A commit must be on disk when it is answered, and the server must be a primary.
async fn require_durable_primary(connection: &mut PgConnection) -> Result<(), LeaseOpenError> {
    if let Some(why) = not_durable(connection).await.map_err(LeaseOpenError::Store)? {
        return Err(LeaseOpenError::NotDurable(why));
    }
    let fsync: String = sqlx::query_scalar("SELECT current_setting('fsync')")
        .fetch_one(connection)
        .await
        .map_err(LeaseOpenError::Store)?;
    if fsync != "on" {
        tracing::warn!(
            "the lease store's Postgres runs with fsync off: a power cut may repeat fencing tokens"
        );
    }
    Ok(())
}

/// Why this session may lose commits, if it may. The settings of a role or database can change
/// while we run.
async fn not_durable(connection: &mut PgConnection) -> Result<Option<String>, sqlx::Error> {
    let read = "SELECT current_setting('synchronous_commit'), pg_is_in_recovery()";
    let (commit, standby): (String, bool) = sqlx::query_as(read).fetch_one(connection).await?;
    if standby {
        return Ok(Some("it is a standby; give the primary's address".to_owned()));
    }
    let is_durable = matches!(commit.as_str(), "on" | "remote_apply");
    Ok((!is_durable)
        .then(|| format!("synchronous_commit is {commit}, but must be on for this role and database")))
}

/// Connects with timeouts for statements that read, change or lock whole tables: longer than those of a lease operation.
async fn connect_for_tables(url: &str) -> Result<PgConnection, LeaseOpenError> {
    let mut connection = options(url)?.connect().await.map_err(LeaseOpenError::Store)?;
    let set_timeouts = sqlx::raw_sql("SET statement_timeout = '10min'; SET lock_timeout = '30s'");
    set_timeouts
        .execute(&mut connection)
        .await
        .map_err(LeaseOpenError::Store)?;
    Ok(connection)
}

/// Opens a store whose leases are moved: everything that a start checks.
///
/// # Errors
/// See [`LeaseOpenError`].
pub(crate) async fn open_to_move(url: &str) -> Result<PgConnection, LeaseOpenError> {
    migrate(url, None).await?;
    let mut connection = connect_for_tables(url).await?;
    let is_owner = may_migrate_postgres(&mut connection).await;
    if !is_owner.map_err(LeaseOpenError::Store)? {
        return Err(LeaseOpenError::NotOwner);
    }
    require_durable_primary(&mut connection).await?;
    identify(&mut connection).await?;
    refuse_rewound(&mut connection).await?;
    Ok(connection)
}

/// Replicas with a recent heartbeat.
///
/// # Errors
/// The store does not answer.
pub(crate) async fn live_replicas(connection: &mut PgConnection) -> Result<i64, LeaseOpenError> {
    let live = sqlx::query_scalar(sql::REPLICAS).bind("");
    live.fetch_one(connection).await.map_err(LeaseOpenError::Store)
}

/// The store's time, in milliseconds since 1970.
///
/// # Errors
/// The store does not answer.
pub(crate) async fn time_ms(connection: &mut PgConnection) -> Result<i64, LeaseOpenError> {
    let time = sqlx::query_scalar(sql::TIME);
    time.fetch_one(connection).await.map_err(LeaseOpenError::Store)
}

/// Migrates the tables, and writes the identity of a new shard.
///
/// # Errors
/// See [`LeaseOpenError`].
pub(crate) async fn migrate(
    url: &str,
    identity: Option<(&ShardIdentity, &str)>,
) -> Result<(), LeaseOpenError> {
    let mut connection = connect_for_tables(url).await?;
    runtime::db::schema::migrate_postgres(&mut connection)
        .await
        .map_err(LeaseOpenError::Migration)?;
    write_identity(&mut connection, identity).await?;
    connection.close().await.map_err(LeaseOpenError::Store)
}

/// Checks everything that start checks, in a read-only session.
///
/// # Errors
/// The server does not answer or refuses the connection.
pub async fn inspect_store(url: &str) -> Result<StoreInspection, LeaseOpenError> {
    let options = options(url)?.options([("default_transaction_read_only", "on")]);
    let mut connection = options.connect().await.map_err(LeaseOpenError::Store)?;
    let inspected = read_all(&mut connection).await.map_err(LeaseOpenError::Store);
    let _closed = connection.close().await;
    inspected
}

async fn read_all(connection: &mut PgConnection) -> Result<StoreInspection, sqlx::Error> {
    let migrations = runtime::db::schema::status_postgres(&mut *connection).await?;
    let read = "SELECT clock_timestamp(), current_setting('server_version'), current_setting('fsync')";
    let (now, version, fsync): (DateTime<Utc>, String, String) =
        sqlx::query_as(read).fetch_one(&mut *connection).await?;
    let may_migrate = runtime::db::schema::may_migrate_postgres(&mut *connection).await?;
    let audit_rights = audit_rights(&mut *connection).await?;
    let mut not_durable = not_durable(&mut *connection).await?;
    if not_durable.is_none() && fsync != "on" {
        not_durable = Some("fsync is off: a power cut may repeat fencing tokens".to_owned());
    }
    let behind: Option<String> = match migrations {
        MigrationStatus::Fresh => None,
        _ => {
            sqlx::query_scalar(sql::REWOUND)
                .fetch_optional(&mut *connection)
                .await?
        }
    };
    let rewound = behind.map(|resource| {
        format!(
            "the counter of {} is behind a token that was granted",
            domain::escape::visible(&resource)
        )
    });
    Ok(StoreInspection {
        not_durable,
        rewound,
        moved_to: match migrations.is_complete() {
            true => moved_to(&mut *connection).await?,
            false => None,
        },
        now: Some(now),
        version: Some(format!("PostgreSQL {version}")),
        may_migrate,
        audit_rights,
        migrations,
    })
}

async fn audit_rights(connection: &mut PgConnection) -> Result<Option<AuditRights>, sqlx::Error> {
    let read = "SELECT pg_has_role(relowner, 'USAGE'), has_table_privilege(oid, 'UPDATE, DELETE, TRUNCATE')
        FROM pg_class WHERE oid = to_regclass('audit_entries')";
    let read: Option<(bool, bool)> = sqlx::query_as(read).fetch_optional(connection).await?;
    Ok(read.map(|(is_owner, may_change)| match (is_owner, may_change) {
        (true, _) => AuditRights::Owner,
        (false, true) => AuditRights::Writer,
        (false, false) => AuditRights::Appender,
    }))
}

/// Raises every token of a store that was restored from a copy, so that it may be served again.
/// Recorded as an epoch.
///
/// # Errors
/// See [`LeaseOpenError`].
pub async fn raise_epoch(url: &str) -> Result<i64, LeaseOpenError> {
    let mut connection = connect_for_tables(url).await?;
    sqlx::query(sql::REPAIR_COUNTERS)
        .execute(&mut connection)
        .await
        .map_err(LeaseOpenError::Store)?;
    let update = "UPDATE store_meta SET epoch = epoch + 1, token_floor = $1 + greatest(token_floor,
        coalesce((SELECT max(last_token) FROM resource_tokens), 0)), moved_to = NULL RETURNING epoch";
    let query = sqlx::query_scalar(update).bind(EPOCH_STEP.cast_signed());
    let epoch = query
        .fetch_one(&mut connection)
        .await
        .map_err(LeaseOpenError::Store)?;
    connection.close().await.map_err(LeaseOpenError::Store)?;
    Ok(epoch)
}

async fn refuse_rewound(connection: &mut PgConnection) -> Result<(), LeaseOpenError> {
    let behind: Option<String> = sqlx::query_scalar(sql::REWOUND)
        .fetch_optional(connection)
        .await
        .map_err(LeaseOpenError::Store)?;
    match behind {
        Some(resource) => Err(LeaseOpenError::Rewound(format!(
            "the counter of {} is behind a token that was granted",
            domain::escape::visible(&resource)
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
