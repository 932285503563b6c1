//! The one writer. A batch is decided from what is known of its resources and written in one go: BEGIN IMMEDIATE, the
//! rows, COMMIT. It blocks: batches come on the thread of the lane (see `lease::lanes`), because a turn of threads for each
//! would cost more than the rows of many operations.
//!
//! **Invariants:** after an error of any kind a writer is dropped, with the transaction that may be open in it and all
//! that it knows. Each statement touches the one row that was decided on, or the transaction ends.

use std::sync::Arc;

use domain::lease::{LeaseId, StoreTime};
use domain::observation::Tick;
use rusqlite::Connection;

use super::load::File;
use super::{StoreClock, load, open, sql, write};
use crate::lease::batch::{Ran, run};
use crate::lease::operation::Operation;
use crate::lease::store::StoreError;
use crate::lease::store::asked::Asked;
use crate::lease::store::known::Known;

pub(super) struct Writer {
    connection: Connection,
    known: Known,
    /// None before anything was read of it.
    file: Option<File>,
}

/// A batch that is on disk.
pub(super) struct Committed {
    pub(super) now: StoreTime,
    pub(super) read_at: Tick,
    pub(super) ran: Ran,
}

impl Writer {
    pub(super) fn new(connection: Connection) -> Self {
        Self {
            connection,
            known: Known::new(),
            file: None,
        }
    }

    /// `journal_mode` and `synchronous` as this session says them.
    pub(super) fn settings(&self) -> rusqlite::Result<(String, i64)> {
        open::settings(&self.connection)
    }

    /// Takes the writer and gives it back, unless something went wrong. Blocks until the batch is on disk.
    pub(super) fn apply(
        mut self,
        operations: &[Operation],
        replica: &Arc<str>,
        clock: &StoreClock,
    ) -> Result<(Self, Committed), StoreError> {
        let (mut loaded, missing) = self.known.recall(Asked::of(operations));
        begin(&self.connection, self.file)?;
        let file = match self.file {
            Some(file) if missing.is_empty() => {
                loaded.floor = file.floor;
                file
            }
            _ => {
                let file;
                (file, loaded) = load::load(&self.connection, missing, loaded)?;
                file
            }
        };
        // Under the file's lock.
        let (read_at, now) = clock.now();
        loaded.now = now;
        let mut ran = run(loaded, operations, replica)?;
        if !ran.changes.is_empty() {
            write::write(&self.connection, &ran.changes, replica, now)?;
        }
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        self.file = Some(file);
        self.known.keep(std::mem::take(&mut ran.after));
        Ok((self, Committed { now, read_at, ran }))
    }

    /// Forgets what nobody can ask for any more: ended leases older than one id, keys older than a moment.
    pub(super) async fn prune(self, leases: LeaseId, keys: StoreTime) -> Result<Self, StoreError> {
        let Self {
            connection,
            known,
            file,
        } = self;
        let prune = move |connection: &mut Connection| {
            let mut statement = connection.prepare_cached(sql::PRUNE_LEASES)?;
            statement.execute([leases.to_string()])?;
            connection.prepare_cached(sql::PRUNE_KEYS)?.execute([keys.ms()])?;
            Ok(())
        };
        let (connection, ()) = aside(connection, prune).await?;
        Ok(Self {
            connection,
            known,
            file,
        })
    }
}

/// Begins, and asks the file whether another connection has written since we looked last.
fn begin(connection: &Connection, known: Option<File>) -> Result<(), StoreError> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    let Some(known) = known else { return Ok(()) };
    if load::data_version(connection)? == known.data_version {
        return Ok(());
    }
    Err(StoreError::Conflict)
}

/// Runs what blocks aside from whoever asks for it. The connection does not come back from an error.
async fn aside<T: Send + 'static>(
    mut connection: Connection,
    work: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
) -> Result<(Connection, T), StoreError> {
    let done = tokio::task::spawn_blocking(move || {
        let done = work(&mut connection)?;
        Ok((connection, done))
    });
    let ended =
        |error: tokio::task::JoinError| StoreError::Corrupt(format!("the writer's thread ended: {error}"));
    done.await.map_err(ended)?
}
