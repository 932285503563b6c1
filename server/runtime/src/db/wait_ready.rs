//! Waits for the store at start: a busy machine or a database that is starting gets time, and the log states what is
//! awaited. Later operations do not wait as long.

use std::time::Duration;

use parking_lot::Mutex;
use sqlx::Error;

use super::DbError;

const READY_TIMEOUT: Duration = Duration::from_secs(10);
/// Delay after which the wait is logged.
const LOG_AFTER: Duration = Duration::from_secs(1);
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Retries until success, a permanent error, or the timeout.
pub(super) async fn retry<T>(
    what: &str,
    attempt: impl AsyncFnMut() -> Result<T, Error>,
) -> Result<T, DbError> {
    retry_within(READY_TIMEOUT, what, attempt).await
}

async fn retry_within<T>(
    timeout: Duration,
    what: &str,
    mut attempt: impl AsyncFnMut() -> Result<T, Error>,
) -> Result<T, DbError> {
    let last = Mutex::new(Error::PoolTimedOut);
    let keep = |error| std::mem::replace(&mut *last.lock(), error);
    let mut attempts = std::pin::pin!(async {
        loop {
            match attempt().await {
                Err(error) if is_transient(&error) => drop(keep(error)),
                result => return result,
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    });
    if let Ok(result) = tokio::time::timeout(LOG_AFTER.min(timeout), &mut attempts).await {
        return result.map_err(DbError::Open);
    }
    let wait_s = timeout.as_secs();
    tracing::warn!("waiting for {what}, for up to {wait_s} s");
    let remaining = timeout.saturating_sub(LOG_AFTER);
    match tokio::time::timeout(remaining, attempts).await {
        Ok(result) => result.map_err(DbError::Open),
        Err(_) => Err(DbError::Late {
            what: what.to_owned(),
            wait_s,
            why: keep(Error::PoolTimedOut),
        }),
    }
}

/// Busy, starting, or not listening yet: worth a retry.
fn is_transient(error: &Error) -> bool {
    match error {
        Error::PoolTimedOut | Error::Io(_) => true,
        Error::Database(error) => {
            // SQLite: busy, locked, busy during recovery. Postgres: too many connections, starting up.
            let code = error.code();
            code.is_some_and(|code| ["5", "6", "261", "517", "53300", "57P03"].contains(&&*code))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> Error {
        Error::Io(std::io::ErrorKind::ConnectionRefused.into())
    }

    #[tokio::test]
    async fn start_waits_for_a_late_store() {
        // Refusals and timeouts in turn, past the delay of the log message; then success.
        let mut left = 13;
        let opened = retry("the store", async || {
            left -= 1;
            match left {
                0 => Ok(7),
                left if left % 2 == 0 => Err(refused()),
                _ => Err(Error::PoolTimedOut),
            }
        });
        assert_eq!(opened.await.unwrap(), 7);
    }

    #[tokio::test]
    async fn a_missing_store_is_named_with_the_last_error() {
        // Refusals until the timeout, and an attempt that never ends.
        let short = Duration::from_millis(300);
        let result = retry_within(short, "Postgres on db:5432", async || Err::<(), _>(refused())).await;
        let text = result.unwrap_err().to_string();
        assert!(
            text.starts_with("Postgres on db:5432 did not open within"),
            "{text}"
        );
        assert!(text.contains("refused"), "{text}");
        let hangs = retry_within(short, "x", async || {
            std::future::pending::<Result<(), Error>>().await
        })
        .await;
        assert!(matches!(hangs, Err(DbError::Late { .. })));
    }

    #[tokio::test]
    async fn permanent_connection_errors_are_not_retried() {
        // A wrong password or a bad file: one attempt.
        let mut attempts = 0;
        let refused = retry("x", async || {
            attempts += 1;
            Err::<(), _>(Error::RowNotFound)
        });
        assert!(matches!(refused.await, Err(DbError::Open(_))));
        assert_eq!(attempts, 1);
    }
}
