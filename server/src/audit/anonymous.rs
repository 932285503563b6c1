//! Audit entries of unauthenticated requests: counted in memory by source, written at most once a minute each with
//! their number.
//!
//! The first of a source is written immediately. However many anonymous requests arrive, the audit log grows by at
//! most [`BURST`] entries at once and one per [`ENTRY_INTERVAL`]; the excess is written as one entry per minute for all
//! other sources. A killed server loses the counts of at most one minute.

mod counts;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

use self::counts::Counts;
use super::{Audit, Entry};
use runtime::tasks;

/// Interval between two entries about one source and kind.
const SOURCE_ENTRY_INTERVAL: Duration = Duration::from_secs(60);
/// Entries about all sources that may be written at once after a quiet period.
const BURST: u32 = 30;
/// Interval between further entries.
const ENTRY_INTERVAL: Duration = Duration::from_secs(10);
/// Sources and kinds counted separately; more are counted together.
const SOURCES_MAX: usize = 1_000;
/// User names listed per entry about password guesses.
const NAMES_MAX: usize = 4;
/// Interval at which pending counts are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Default)]
pub(super) struct AnonymousCounts(Arc<Mutex<Counts>>);

impl AnonymousCounts {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock()
    }
}

impl Audit {
    /// Counts a refused anonymous request, and writes the entry if it is the first of its source. `kind` separates
    /// entries of the same action and outcome. An entry that cannot be written stays counted.
    pub async fn append_anonymous(&self, entry: Entry, kind: &'static str) {
        let due = self.anonymous.lock().add(entry, kind, self.clock.tick());
        if let Some(entry) = due {
            self.write_counted(entry, kind).await;
        }
    }

    /// Writes due counts until `stop`, and then the rest.
    pub fn write_anonymous_counts(&self, stop: CancellationToken) {
        let audit = self.clone();
        let ending = stop.clone();
        tasks::spawn_until_finished("audit of anonymous requests", stop, move || {
            let (audit, ending) = (audit.clone(), ending.clone());
            async move {
                while tokio::time::timeout(CHECK_INTERVAL, ending.cancelled())
                    .await
                    .is_err()
                {
                    let due = audit.anonymous.lock().due(audit.clock.tick());
                    audit.write_all(due).await;
                }
                let pending = audit.anonymous.lock().drain();
                audit.write_all(pending).await;
            }
        });
    }

    async fn write_all(&self, entries: Vec<(Entry, &'static str)>) {
        for (entry, kind) in entries {
            self.write_counted(entry, kind).await;
        }
    }

    async fn write_counted(&self, entry: Entry, kind: &'static str) {
        if let Err(error) = self.append(entry.clone()).await {
            tracing::error!(
                "the audit entry of a rejected anonymous request could not be written yet: {error}"
            );
            self.anonymous.lock().put_back(entry, kind);
        }
    }
}
