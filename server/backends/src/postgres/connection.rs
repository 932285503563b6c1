//! Database sessions: few, with timeouts, reused. A session that answered late or was
//! interrupted is closed, never reused.
//!
//! Not `sqlx`'s pool: it retries a refused connection until its timeout and then loses the
//! cause.

use std::sync::Arc;
use std::time::Duration;

use domain::duration::millis;
use parking_lot::Mutex;
use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Postgres};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::error::{self, StatementError};
use super::settings::PostgresSettings;
use super::tls_server_name::Relay;
use crate::BackendError;
use config::postgres::{PoolerAddress, QueryText};

/// Concurrent sessions, including the listening one.
const SESSIONS_MAX: usize = 3;

/// Opens sessions on demand and keeps a few.
#[derive(Debug)]
pub(super) struct Links {
    pub(super) settings: PostgresSettings,
    idle: Mutex<Vec<PgConnection>>,
    permits: Semaphore,
    /// One less: reads of single locks leave a session to scans.
    inspections: Semaphore,
}

impl Links {
    pub(super) fn new(settings: PostgresSettings, listens: bool) -> Self {
        let sessions_max = SESSIONS_MAX - usize::from(listens);
        Self {
            settings,
            idle: Mutex::default(),
            permits: Semaphore::new(sessions_max),
            inspections: Semaphore::new(sessions_max - 1),
        }
    }

    pub(super) fn timeout(&self) -> Duration {
        self.settings.timeout
    }

    pub(super) fn timeout_ms(&self) -> u64 {
        millis(self.settings.timeout).unsigned_abs()
    }

    fn no_answer(&self) -> BackendError {
        BackendError::NoAnswer {
            after_ms: self.timeout_ms(),
        }
    }

    async fn permit<'a>(&self, permits: &'a Semaphore) -> Result<SemaphorePermit<'a>, BackendError> {
        match timeout(self.timeout(), permits.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(self.no_answer()),
        }
    }

    /// Held while one lock is read. Requests of users cause these reads, in any number.
    pub(super) async fn permit_inspection(&self) -> Result<SemaphorePermit<'_>, BackendError> {
        self.permit(&self.inspections).await
    }

    /// A session that has just answered: an idle one, or a new one.
    pub(super) async fn acquire(&self) -> Result<Link<'_>, BackendError> {
        let permit = self.permit(&self.permits).await?;
        while let Some(mut idle) = self.take_idle() {
            match timeout(self.timeout(), idle.ping()).await {
                Ok(Ok(())) => {
                    return Ok(Link {
                        links: self,
                        connection: Some(idle),
                        open: false,
                        _permit: permit,
                    });
                }
                // It ended while idle, for example by a restart.
                Ok(Err(_)) => {}
                Err(_) => return Err(self.no_answer()),
            }
        }
        let connection = self.connect().await?;
        Ok(Link {
            links: self,
            connection: Some(connection),
            open: false,
            _permit: permit,
        })
    }

    fn take_idle(&self) -> Option<PgConnection> {
        self.idle.lock().pop()
    }

    /// Needed if the certificate's name is not the host's.
    pub(super) async fn relay(&self) -> Result<Option<Relay>, sqlx::Error> {
        match &self.settings.server_name {
            Some(name) => Ok(Some(Relay::open(&self.settings.options, name).await?)),
            None => Ok(None),
        }
    }

    async fn connect(&self) -> Result<PgConnection, BackendError> {
        let opening = Box::pin(async {
            let Some(relay) = self.relay().await? else {
                return self.settings.options.connect().await;
            };
            let connection = relay.options.connect().await?;
            relay.connected();
            Ok(connection)
        });
        match timeout(self.timeout(), opening).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(error::from_connection(error)),
            Err(_) => Err(self.no_answer()),
        }
    }
}

/// One borrowed session. Each statement takes the connection out and puts it back when its
/// response is complete, so that a cancelled statement closes it.
#[derive(Debug)]
pub(super) struct Link<'a> {
    links: &'a Links,
    connection: Option<PgConnection>,
    /// In a transaction: must not be reused.
    open: bool,
    _permit: SemaphorePermit<'a>,
}

impl Link<'_> {
    pub(super) fn query_text(&self) -> QueryText {
        self.links.settings.query_text
    }

    pub(super) fn poolers(&self) -> Arc<[PoolerAddress]> {
        Arc::clone(&self.links.settings.poolers)
    }

    /// The rows of one prepared statement with bound values.
    pub(super) async fn rows(
        &mut self,
        query: Query<'_, Postgres, PgArguments>,
    ) -> Result<Vec<PgRow>, StatementError> {
        let mut connection = self.take()?;
        let answer = timeout(self.links.timeout(), query.fetch_all(&mut connection)).await;
        self.return_connection(connection, answer)
    }

    /// The rows of several statements sent as one text, in one round trip. The text contains
    /// quoted names but no values.
    async fn script(&mut self, sql: String) -> Result<Vec<PgRow>, StatementError> {
        let mut connection = self.take()?;
        let script = sqlx::raw_sql(AssertSqlSafe(sql)).fetch_all(&mut connection);
        let answer = timeout(self.links.timeout(), script).await;
        self.return_connection(connection, answer)
    }

    /// Opens a read-only transaction and reads the first `rows_max` rows of `select`; [`Self::fetch_more`] reads on.
    pub(super) async fn first(
        &mut self,
        select: &str,
        rows_max: usize,
    ) -> Result<Vec<PgRow>, StatementError> {
        self.open = true;
        self.script(format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; \
             DECLARE leasehold_rows NO SCROLL CURSOR FOR {select}; FETCH {rows_max} FROM leasehold_rows"
        ))
        .await
    }

    pub(super) async fn fetch_more(&mut self, rows_max: usize) -> Result<Vec<PgRow>, StatementError> {
        self.script(format!("FETCH {rows_max} FROM leasehold_rows")).await
    }

    /// Ends the transaction of [`Self::first`], also after an error.
    pub(super) async fn end(&mut self) -> Result<(), StatementError> {
        self.script("ROLLBACK".to_owned()).await?;
        self.open = false;
        Ok(())
    }

    /// Ends the session: it is not reused.
    pub(super) fn close(&mut self) {
        self.connection = None;
    }

    fn take(&mut self) -> Result<PgConnection, StatementError> {
        let lost = || {
            StatementError::Lost(BackendError::Unreachable {
                detail: "the session ended".to_owned(),
            })
        };
        self.connection.take().ok_or_else(lost)
    }

    fn return_connection(
        &mut self,
        connection: PgConnection,
        answer: Result<Result<Vec<PgRow>, sqlx::Error>, tokio::time::error::Elapsed>,
    ) -> Result<Vec<PgRow>, StatementError> {
        let failure = match answer {
            Ok(Ok(rows)) => {
                self.connection = Some(connection);
                return Ok(rows);
            }
            Ok(Err(error)) => error::from_statement(error),
            Err(_) => StatementError::Lost(self.links.no_answer()),
        };
        if matches!(failure, StatementError::Refused(_)) {
            self.connection = Some(connection);
        }
        Err(failure)
    }
}

impl Drop for Link<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take()
            && !self.open
        {
            self.links.idle.lock().push(connection);
        }
    }
}
