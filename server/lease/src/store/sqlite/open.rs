//! Opening an SQLite store: exclusive to one process, durability settings checked, a rewound file refused.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use chrono::DateTime;
use domain::lease::limits::EPOCH_STEP;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};
use tokio::sync::Mutex;

use super::super::StoreError;
use super::super::moved::{self, refuse_moved};
use super::super::witness_file::WitnessFile;
use super::file_lock::{io, lock_file};
use super::store_clock::StoreClock;
use super::unwritten_counters::UnwrittenCounters;
use super::writer::Writer;
use super::{SqliteStore, WriterSlot, sql, wal_limit};
use crate::error::LeaseOpenError;
use crate::store_inspection::StoreInspection;
use runtime::clock::Clock;
use runtime::db::schema::MigrationStatus;
use runtime::random;

const BUSY: Duration = Duration::from_millis(1_000);
const READERS_MAX: u32 = 3;
const STATEMENTS_KEPT: usize = 32;
/// Bytes. Larger pages need fewer system calls per batch, but more bytes to write and to sum. An existing file keeps
/// its page size.
const PAGE_BYTES: u32 = 4_096;
/// Live leases are few and grants are appended, so a larger cache brings nothing.
const CACHE_KB: i64 = 16_384;
const READ_TIMEOUT: Duration = Duration::from_millis(1_500);

type Meta = (String, i64, i64);

impl SqliteStore {
    /// # Errors
    /// See [`LeaseOpenError`].
    pub async fn open(path: &Path, clock: Clock) -> Result<Self, LeaseOpenError> {
        let (path, lock) = lock_file(path)?;
        let options = options(&path);
        let mut writer = options.connect().await.map_err(LeaseOpenError::Store)?;
        require_durable(&mut writer).await?;
        migrate(&mut writer).await?;
        refuse_moved(&mut writer).await?;
        let witness = check_witness(&mut writer, &path).await?;
        let clock = StoreClock::begin(&mut writer, clock)
            .await
            .map_err(LeaseOpenError::Store)?;
        // Waiters do not survive a restart.
        let forget = sqlx::query("DELETE FROM lease_waiters");
        forget.execute(&mut writer).await.map_err(LeaseOpenError::Store)?;
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS_MAX)
            .acquire_timeout(READ_TIMEOUT)
            .connect_lazy_with(options.read_only(true));
        writer.close().await.map_err(LeaseOpenError::Store)?;
        let writer = self::writer(&path).map_err(|error| LeaseOpenError::Writer(error.into()))?;
        let lock = Arc::new(lock);
        let counters: Arc<parking_lot::Mutex<UnwrittenCounters>> = Arc::default();
        Ok(Self {
            writer: Mutex::new(WriterSlot {
                writer: Some(Writer::new(writer, lock.clone(), counters.clone())),
                lock: Some(lock),
            }),
            readers,
            clock,
            replica: "local".into(),
            counters,
            grants: AtomicI64::new(witness.grants),
            witness: Mutex::new(witness),
            prune_queue: parking_lot::Mutex::default(),
            path,
        })
    }

    /// `journal_mode` and `synchronous` of the writer's own session.
    ///
    /// # Errors
    /// The writer cannot be opened or queried.
    pub async fn writer_settings(&self) -> Result<(String, i64), StoreError> {
        let mut slot = self.writer.lock().await;
        let writer = slot.take(&self.path, &self.counters)?;
        let settings = writer.settings()?;
        slot.writer = Some(writer);
        Ok(settings)
    }
}

/// Opens a file whose leases are moved: everything that a start checks, and the lock against servers.
///
/// # Errors
/// See [`LeaseOpenError`].
pub(crate) async fn open_to_move(path: &Path) -> Result<(SqliteConnection, File), LeaseOpenError> {
    let (path, lock) = lock_file(path)?;
    let mut writer = options(&path).connect().await.map_err(LeaseOpenError::Store)?;
    require_durable(&mut writer).await?;
    migrate(&mut writer).await?;
    check_witness(&mut writer, &path).await?;
    Ok((writer, lock))
}

/// Writes the counters that the last writer did not write, refuses a rewound store, and raises the tokens of a copy.
async fn check_witness(writer: &mut SqliteConnection, path: &Path) -> Result<WitnessFile, LeaseOpenError> {
    restore_counters(writer, sql::RESTORE_COUNTERS)
        .await
        .map_err(LeaseOpenError::Store)?;
    let (store_id, epoch, grants) = meta(&mut *writer).await?;
    let witness = WitnessFile {
        store_id,
        epoch,
        grants,
    };
    refuse_rewound(&mut *writer, path, &witness).await?;
    let witness = raise_floor_of_copy(writer, path, witness).await?;
    witness.write(path).map_err(|source| io(path, source))?;
    Ok(witness)
}

/// Raises every token of a store that was restored from a copy, so that it may be served again. Recorded as an
/// epoch.
///
/// # Errors
/// See [`LeaseOpenError`].
pub async fn raise_epoch(path: &Path) -> Result<i64, LeaseOpenError> {
    let (path, _lock) = lock_file(path)?;
    let mut writer = options(&path).connect().await.map_err(LeaseOpenError::Store)?;
    require_durable(&mut writer).await?;
    migrate(&mut writer).await?;
    let (store_id, epoch, grants) = meta(&mut writer).await?;
    let seen = WitnessFile::read(&path).map_or(epoch, |witness| witness.epoch.max(epoch));
    restore_counters(&mut writer, sql::REPAIR_COUNTERS)
        .await
        .map_err(LeaseOpenError::Store)?;
    raise_floor(&mut writer, seen).await?;
    sqlx::query(moved::CLEAR)
        .execute(&mut writer)
        .await
        .map_err(LeaseOpenError::Store)?;
    writer.close().await.map_err(LeaseOpenError::Store)?;
    let witness = WitnessFile {
        store_id,
        epoch: seen + 1,
        grants,
    };
    // Without it the next start would find no witness file and raise the tokens again.
    witness.write(&path).map_err(|source| io(&path, source))?;
    Ok(seen + 1)
}

async fn restore_counters(writer: &mut SqliteConnection, statement: &'static str) -> Result<(), sqlx::Error> {
    sqlx::query(statement).execute(&mut *writer).await?;
    let query = sqlx::query(sql::UNWRITTEN_FROM).bind(None::<String>);
    query.execute(writer).await?;
    Ok(())
}

/// Raises every token above any that was issued in epochs up to this one: a lost epoch above that of the file had raised
/// them as well.
async fn raise_floor(writer: &mut SqliteConnection, epoch: i64) -> Result<(), LeaseOpenError> {
    let update =
        "UPDATE store_meta SET epoch = ?1 + 1, token_floor = ?2 * (?1 + 1 - epoch) + max(token_floor,
        coalesce((SELECT max(last_token) FROM resource_tokens), 0))";
    let query = sqlx::query(update).bind(epoch).bind(EPOCH_STEP.cast_signed());
    query.execute(writer).await.map_err(LeaseOpenError::Store)?;
    Ok(())
}

/// A store that has issued tokens and has no witness file of its own was copied here, perhaps from a backup that
/// lacks the last tokens. Their number is unknown, so the floor is raised before any grant.
async fn raise_floor_of_copy(
    writer: &mut SqliteConnection,
    path: &Path,
    store: WitnessFile,
) -> Result<WitnessFile, LeaseOpenError> {
    let is_its_own = WitnessFile::read(path).is_some_and(|witness| witness.store_id == store.store_id);
    if is_its_own || store.grants == 0 {
        return Ok(store);
    }
    raise_floor(writer, store.epoch).await?;
    let epoch = store.epoch + 1;
    tracing::warn!(
        epoch,
        "the store has no witness file, so it was copied here, perhaps from a backup: every fencing token is raised"
    );
    Ok(WitnessFile { epoch, ..store })
}

/// Migrates the tables of a file that no server has open.
///
/// # Errors
/// See [`LeaseOpenError`].
pub async fn migrate_file(path: &Path) -> Result<(), LeaseOpenError> {
    let (path, _lock) = lock_file(path)?;
    let mut writer = options(&path).connect().await.map_err(LeaseOpenError::Store)?;
    require_durable(&mut writer).await?;
    migrate(&mut writer).await?;
    writer.close().await.map_err(LeaseOpenError::Store)
}

/// Checks everything that start checks, read-only.
///
/// # Errors
/// The file cannot be read.
pub async fn inspect_store(
    reader: &mut SqliteConnection,
    path: &Path,
) -> Result<StoreInspection, sqlx::Error> {
    let migrations = runtime::db::schema::status_sqlite(&mut *reader).await?;
    let meta: Option<(String, i64, i64, i64)> = match migrations {
        MigrationStatus::Fresh => None,
        _ => {
            let read = "SELECT store_id, epoch, clock_ms, grant_count FROM store_meta";
            sqlx::query_as(read).fetch_optional(&mut *reader).await?
        }
    };
    let mut inspected = StoreInspection {
        not_durable: None,
        rewound: None,
        moved_to: match migrations.is_complete() {
            true => moved::moved_to(&mut *reader).await?,
            false => None,
        },
        now: None,
        version: None,
        may_migrate: true,
        audit_rights: None,
        migrations,
    };
    if let Some((store_id, epoch, clock_ms, grants)) = meta {
        let store = WitnessFile {
            store_id,
            epoch,
            grants,
        };
        inspected.now = DateTime::from_timestamp_millis(clock_ms);
        inspected.rewound = rewound(reader, path, &store).await?;
    }
    Ok(inspected)
}

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .page_size(PAGE_BYTES)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY)
        .disable_statement_logging()
}

/// The writer's own connection: no mutex, a cache of prepared statements. The durability settings are checked on
/// each new connection, not only on the first.
pub(super) fn writer(path: &Path) -> Result<rusqlite::Connection, StoreError> {
    use rusqlite::OpenFlags;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let writer = rusqlite::Connection::open_with_flags(path, flags)?;
    writer.busy_timeout(BUSY)?;
    writer.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    writer.pragma_update(None, "journal_mode", "wal")?;
    writer.pragma_update(None, "synchronous", "full")?;
    wal_limit::set(&writer, path)?;
    writer.pragma_update(None, "cache_size", -CACHE_KB)?;
    checkpoint(&writer);
    match not_durable(&settings(&writer)?) {
        None => Ok(writer),
        Some(why) => Err(StoreError::NotDurable(why)),
    }
}

/// Checkpoints the WAL so that its space is reused: the previous writer may have failed because the disk was full. A
/// failure is ignored; the next batch reports it.
fn checkpoint(writer: &rusqlite::Connection) {
    let checkpointed = writer.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    if let Err(error) = checkpointed {
        tracing::debug!(%error, "the log could not be checkpointed");
    }
}

/// `journal_mode` and `synchronous` of this connection.
pub(super) fn settings(writer: &rusqlite::Connection) -> rusqlite::Result<(String, i64)> {
    let journal = writer.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    let synchronous = writer.pragma_query_value(None, "synchronous", |row| row.get(0))?;
    Ok((journal, synchronous))
}

/// A commit must be on disk when it is answered.
async fn require_durable(writer: &mut SqliteConnection) -> Result<(), LeaseOpenError> {
    let journal = sqlx::query_scalar("PRAGMA journal_mode")
        .fetch_one(&mut *writer)
        .await
        .map_err(LeaseOpenError::Store)?;
    let synchronous = sqlx::query_scalar("PRAGMA synchronous")
        .fetch_one(writer)
        .await
        .map_err(LeaseOpenError::Store)?;
    not_durable(&(journal, synchronous)).map_or(Ok(()), |why| Err(LeaseOpenError::NotDurable(why)))
}

/// Why a session with these settings may lose commits, if it may.
fn not_durable((journal, synchronous): &(String, i64)) -> Option<String> {
    let is_durable = journal == "wal" && *synchronous == 2;
    (!is_durable).then(|| {
        format!("journal_mode is {journal} and synchronous is {synchronous}, but must be wal and 2 (FULL)")
    })
}

async fn migrate(writer: &mut SqliteConnection) -> Result<(), LeaseOpenError> {
    runtime::db::schema::migrate_sqlite(writer)
        .await
        .map_err(LeaseOpenError::Migration)
}

async fn meta(writer: &mut SqliteConnection) -> Result<Meta, LeaseOpenError> {
    let id = random::id();
    let first =
        "INSERT OR IGNORE INTO store_meta (only_row, store_id, epoch, token_floor, clock_ms, grant_count)
        VALUES (1, ?1, 1, 0, 0, 0)";
    sqlx::query(first)
        .bind(id)
        .execute(&mut *writer)
        .await
        .map_err(LeaseOpenError::Store)?;
    let read = sqlx::query_as("SELECT store_id, epoch, grant_count FROM store_meta");
    read.fetch_one(writer).await.map_err(LeaseOpenError::Store)
}

async fn refuse_rewound(
    writer: &mut SqliteConnection,
    path: &Path,
    store: &WitnessFile,
) -> Result<(), LeaseOpenError> {
    let why = rewound(writer, path, store)
        .await
        .map_err(LeaseOpenError::Store)?;
    why.map_or(Ok(()), |why| Err(LeaseOpenError::Rewound(why)))
}

/// Why fencing tokens would be issued twice, if they would.
async fn rewound(
    reader: &mut SqliteConnection,
    path: &Path,
    store: &WitnessFile,
) -> Result<Option<String>, sqlx::Error> {
    if let Some(seen) = WitnessFile::read(path)
        && seen.is_ahead_of(store)
    {
        return Ok(Some(format!(
            "it has issued {} tokens in epoch {}, but the witness file records {} in epoch {}",
            store.grants, store.epoch, seen.grants, seen.epoch
        )));
    }
    let behind: Option<String> = sqlx::query_scalar(sql::REWOUND).fetch_optional(reader).await?;
    Ok(behind.map(|resource| {
        format!(
            "the counter of {} is behind a token that was granted",
            domain::escape::visible(&resource)
        )
    }))
}
