//! Entries about requests of nobody known: counted in memory by source, written at most once a minute each with their number.
//!
//! The first of a source is written at once. No number of anonymous requests grows the audit log faster than
//! [`BURST`] and [`EVERY`] allow; what exceeds them goes into one entry a minute for all other sources. A killed server
//! loses the numbers of at most a minute.

mod counts;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use self::counts::Counts;
use super::{Audit, Entry};
use crate::tasks;

/// Entries about one source and one kind of refusal.
const WRITTEN_EVERY: Duration = Duration::from_secs(60);
/// Entries about all sources that are written at once after a quiet time.
const BURST: u32 = 30;
/// And after that, one in each such time.
const EVERY: Duration = Duration::from_secs(10);
/// Sources and kinds that are counted apart; more are counted together.
const SOURCES_MAX: usize = 1_000;
/// Names at which passwords were guessed that one entry lists.
const NAMES_MAX: usize = 4;
/// How often pending numbers are looked at.
const LOOK: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Default)]
pub(super) struct AnonymousCounts(Arc<Mutex<Counts>>);

impl AnonymousCounts {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Audit {
    /// Counts a refused request of nobody known, and writes the entry where it is the first of its source. `kind` tells
    /// entries of the same action and outcome apart. An entry that cannot be written stays counted.
    pub async fn append_anonymous(&self, entry: Entry, kind: &'static str) {
        let due = self.anonymous.lock().add(entry, kind, self.clock.tick());
        if let Some(entry) = due {
            self.write_counted(entry, kind).await;
        }
    }

    /// Writes numbers that are due, until `stop`, and then the rest.
    pub fn write_anonymous_counts(&self, stop: CancellationToken) {
        let audit = self.clone();
        let ending = stop.clone();
        tasks::keep_to_end("audit of anonymous requests", stop, move || {
            let (audit, ending) = (audit.clone(), ending.clone());
            async move {
                while tokio::time::timeout(LOOK, ending.cancelled()).await.is_err() {
                    let due = audit.anonymous.lock().due(audit.clock.tick());
                    audit.write_all(due).await;
                }
                let rest = audit.anonymous.lock().rest();
                audit.write_all(rest).await;
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
            tracing::error!("a refused anonymous request could not be recorded yet: {error}");
            self.anonymous.lock().put_back(entry, kind);
        }
    }
}
