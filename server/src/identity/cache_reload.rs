//! Reloads the directory when a token or user is missing from it: a command or another replica may just have created
//! it.
//!
//! A miss waits for a read that begins after it, so everything committed before the request is found. Concurrent
//! misses share one read, and each read that found nothing new is followed by a pause: unknown tokens cost the store
//! at most one query per [`REREAD_PAUSE`].

use std::sync::atomic::{AtomicU64, Ordering};

use domain::tick::Tick;
use tokio::sync::Mutex;

use super::limits::REREAD_PAUSE;
use super::{Identity, principal_cache};

#[derive(Debug, Default)]
pub(super) struct Reread {
    /// Number of reads started.
    begun: AtomicU64,
    /// Held by the request that reads.
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    number: u64,
    succeeded: bool,
    /// When it ended, if it found nothing new.
    fruitless_at: Option<Tick>,
}

impl Identity {
    /// Returns once the directory holds everything that was committed before the call.
    ///
    /// # Errors
    /// The store does not answer.
    pub(super) async fn refresh(&self) -> Result<(), sqlx::Error> {
        let next_number = self.reread.begun.load(Ordering::SeqCst) + 1;
        let mut last = self.reread.last.lock().await;
        if last.number >= next_number {
            return if last.succeeded {
                Ok(())
            } else {
                Err(sqlx::Error::PoolTimedOut)
            };
        }
        if let Some(then) = last.fruitless_at {
            let elapsed_ms = u64::try_from(self.clock.tick().since(then)).unwrap_or(u64::MAX);
            let elapsed = std::time::Duration::from_millis(elapsed_ms);
            tokio::time::sleep(REREAD_PAUSE.saturating_sub(elapsed)).await;
        }
        last.number = self.reread.begun.fetch_add(1, Ordering::SeqCst) + 1;
        last.succeeded = false;
        let read = self.reload_if_changed().await;
        last.succeeded = read.is_ok();
        last.fruitless_at = matches!(read, Ok(false)).then(|| self.clock.tick());
        read.map(drop)
    }

    /// Returns whether anything changed.
    pub(super) async fn reload_if_changed(&self) -> Result<bool, sqlx::Error> {
        let is_changed = principal_cache::version(&self.db).await? != self.directory().version;
        if is_changed {
            self.reload().await?;
        }
        Ok(is_changed)
    }

    /// Number of reads caused by misses.
    pub fn rereads(&self) -> u64 {
        self.reread.begun.load(Ordering::SeqCst)
    }
}
