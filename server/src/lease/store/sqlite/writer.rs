//! The one writer. A batch is decided from what is known of its resources, and written in one message to the driver's
//! thread: BEGIN IMMEDIATE, the rows, COMMIT. Each message costs two turns of threads, more than the rows of many
//! operations, so there are as few as can be.
//!
//! **Invariants:** after an error of any kind a writer is dropped, with the transaction that may be open in it and all
//! that it knows. Statements that touch fewer or more rows than were decided on end the transaction.

use std::sync::Arc;

use domain::lease::StoreTime;
use domain::observation::Tick;
use sqlx::sqlite::SqliteConnection;

use super::StoreClock;
use super::known::{File, Known};
use super::load::begin_and_load;
use super::sql;
use crate::lease::batch::{Changes, Ran, run};
use crate::lease::operation::Operation;
use crate::lease::store::StoreError;
use crate::lease::store::asked::Asked;
use crate::lease::store::rows::{Param, Writes, writes};

pub(super) struct Writer {
    pub(super) connection: SqliteConnection,
    known: Known,
}

/// A batch that is on disk.
pub(super) struct Committed {
    pub(super) now: StoreTime,
    pub(super) read_at: Tick,
    pub(super) ran: Ran,
}

impl Writer {
    pub(super) fn new(connection: SqliteConnection) -> Self {
        Self {
            connection,
            known: Known::new(),
        }
    }

    pub(super) async fn apply(
        &mut self,
        operations: &[Operation],
        replica: &Arc<str>,
        clock: &StoreClock,
    ) -> Result<Committed, StoreError> {
        let (mut loaded, missing) = self.known.recall(Asked::of(operations));
        let (file, mut has_begun) = match self.known.file {
            Some(file) if missing.is_empty() => (file, false),
            known => {
                let file = begin_and_load(&mut self.connection, missing, &mut loaded).await?;
                if known.is_some_and(|known| known.data_version != file.data_version) {
                    return Err(StoreError::Conflict);
                }
                (file, true)
            }
        };
        // Nobody but us can hold the file's lock, and we are in turn: the clock is read under it, in effect.
        let (read_at, now) = clock.now();
        loaded.now = now;
        let mut ran = run(loaded, operations, replica)?;
        self.write(&ran.changes, file, &mut has_begun, replica, now)
            .await?;
        self.known.file = Some(file);
        self.known.keep(std::mem::take(&mut ran.after));
        Ok(Committed { now, read_at, ran })
    }

    async fn write(
        &mut self,
        changes: &Changes,
        file: File,
        has_begun: &mut bool,
        replica: &Arc<str>,
        now: StoreTime,
    ) -> Result<(), StoreError> {
        let mut writes = writes(changes, replica, now)?;
        if writes.has_rare() && !*has_begun {
            let begin = sqlx::query(sql::BEGIN).bind(file.data_version);
            guarded(begin.execute(&mut self.connection).await)?;
            *has_begun = true;
        }
        self.write_rare(&mut writes).await?;
        let sql = match (*has_begun, changes.is_empty()) {
            (true, true) => sql::COMMIT,
            (true, false) => sql::WRITE_AND_COMMIT,
            (false, true) => sql::BEGIN_AND_COMMIT,
            (false, false) => sql::BEGIN_WRITE_AND_COMMIT,
        };
        let mut query = sqlx::query(sql);
        if !*has_begun {
            query = query.bind(file.data_version);
        }
        if !changes.is_empty() {
            for param in [writes.counters, writes.changed, writes.born] {
                let param = param.unwrap_or_default();
                query = query.bind(param.json).bind(param.rows.cast_signed());
            }
            let grants = i64::try_from(changes.grants).unwrap_or(0);
            query = query.bind(now.ms()).bind(grants);
        }
        guarded(query.execute(&mut self.connection).await)?;
        Ok(())
    }

    async fn write_rare(&mut self, writes: &mut Writes) -> Result<(), StoreError> {
        self.exactly(sql::KEYS, writes.keys.take()).await?;
        self.any(sql::UNBOUND, writes.unbound.take()).await?;
        // One may leave and join again in the same batch.
        self.any(sql::LEFT, writes.left.take()).await?;
        self.exactly(sql::JOINED, writes.joined.take()).await?;
        self.exactly(sql::REJECTIONS, writes.rejections.take()).await
    }

    /// A statement that must touch each of its rows: anything else means that the file is not what was read.
    async fn exactly(&mut self, sql: &'static str, param: Option<Param>) -> Result<(), StoreError> {
        let Some(Param { json, rows }) = param else {
            return Ok(());
        };
        let done = sqlx::query(sql).bind(json).execute(&mut self.connection).await?;
        if done.rows_affected() == rows {
            return Ok(());
        }
        let written = done.rows_affected();
        Err(StoreError::Corrupt(format!(
            "{rows} rows to write, {written} written"
        )))
    }

    async fn any(&mut self, sql: &'static str, param: Option<Param>) -> Result<(), StoreError> {
        if let Some(param) = param {
            sqlx::query(sql)
                .bind(param.json)
                .execute(&mut self.connection)
                .await?;
        }
        Ok(())
    }
}

/// What the guards among the statements say when they end a transaction.
fn guarded<T>(done: Result<T, sqlx::Error>) -> Result<T, StoreError> {
    let message = match &done {
        Err(sqlx::Error::Database(error)) => error.message(),
        _ => "",
    };
    match message {
        sql::WRITTEN_ELSEWHERE => Err(StoreError::Conflict),
        sql::OTHER_ROWS => Err(StoreError::Corrupt(
            "other rows written than decided on".to_owned(),
        )),
        _ => Ok(done?),
    }
}
