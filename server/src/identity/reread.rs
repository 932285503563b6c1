//! Reads the directory again when a token or a user is missing from it: made a moment ago by a command or another server.
//!
//! A miss waits for a read that begins after it, so what was committed before the request is found. Requests that miss
//! together share one read, and there is a pause after each that found nothing new: unknown tokens cost the store at most
//! one query in [`REREAD_PAUSE`], however many there are.

use std::sync::atomic::{AtomicU64, Ordering};

use domain::observation::Tick;
use tokio::sync::Mutex;

use super::limits::REREAD_PAUSE;
use super::{Identity, directory};

#[derive(Debug, Default)]
pub(super) struct Reread {
    /// Reads that have begun.
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
        let own = self.reread.begun.load(Ordering::SeqCst) + 1;
        let mut last = self.reread.last.lock().await;
        if last.number >= own {
            return if last.succeeded {
                Ok(())
            } else {
                Err(sqlx::Error::PoolTimedOut)
            };
        }
        if let Some(then) = last.fruitless_at {
            let past_ms = u64::try_from(self.clock.tick().since(then)).unwrap_or(u64::MAX);
            let past = std::time::Duration::from_millis(past_ms);
            tokio::time::sleep(REREAD_PAUSE.saturating_sub(past)).await;
        }
        last.number = self.reread.begun.fetch_add(1, Ordering::SeqCst) + 1;
        last.succeeded = false;
        let read = self.reload_if_changed().await;
        last.succeeded = read.is_ok();
        last.fruitless_at = matches!(read, Ok(false)).then(|| self.clock.tick());
        read.map(drop)
    }

    /// Whether there was something new.
    pub(super) async fn reload_if_changed(&self) -> Result<bool, sqlx::Error> {
        let is_changed = directory::version(&self.db).await? != self.directory().version;
        if is_changed {
            self.reload().await?;
        }
        Ok(is_changed)
    }

    /// Reads of the directory that a miss has begun.
    pub fn rereads(&self) -> u64 {
        self.reread.begun.load(Ordering::SeqCst)
    }
}
