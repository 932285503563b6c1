//! Audit entries of refused requests: what one client can make the log grow by is bounded. Requests beyond that are counted in
//! memory, and written at most once a minute with their number.
//!
//! The first of an anonymous source is written immediately, and of a user or a token the first [`PRINCIPAL_BURST`]. However many
//! requests are refused, the audit log grows by at most [`BURST`] counted entries at once and one per [`ENTRY_INTERVAL`], for
//! anonymous clients and for principals each; the excess is written as one entry per minute for all other sources. A killed server
//! loses the counts of at most one minute.

mod allowance;
mod counts;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use self::allowance::Allowances;
use self::counts::Counts;
use super::{Audit, Entry};
use runtime::tasks;

/// Interval between two entries about one source and kind.
const SOURCE_ENTRY_INTERVAL: Duration = Duration::from_secs(60);
/// Entries about all sources that may be written at once after a quiet period.
const BURST: u32 = 30;
/// Interval between further entries.
const ENTRY_INTERVAL: Duration = Duration::from_secs(10);
/// Entries of one user or token that may be written at once after a quiet period.
const PRINCIPAL_BURST: u32 = 200;
/// Interval between further entries of one user or token.
const PRINCIPAL_ENTRY_INTERVAL: Duration = Duration::from_secs(10);
/// Sources and kinds counted separately; more are counted together.
const SOURCES_MAX: usize = 1_000;
/// User names listed per entry about password guesses.
const NAMES_MAX: usize = 4;
/// Interval at which pending counts are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Default)]
pub(super) struct Refusals {
    anonymous: Arc<Mutex<Counts>>,
    principals: Arc<Mutex<Counts>>,
    allowances: Arc<Mutex<Allowances>>,
}

/// An entry, its kind, and where it is counted.
type CountedEntry<'a> = (Entry, &'static str, &'a Mutex<Counts>);

impl Refusals {
    fn all(&self) -> [&Mutex<Counts>; 2] {
        [&self.anonymous, &self.principals]
    }
}

impl Audit {
    /// Counts a refused anonymous request, and writes the entry if it is the first of its source. `kind` separates
    /// entries of the same action and outcome. An entry that cannot be written stays counted.
    pub async fn append_anonymous(&self, entry: Entry, kind: &'static str) {
        let audit = self.clone();
        to_its_end(async move {
            audit.count(entry, kind, &audit.refusals.anonymous).await;
        })
        .await;
    }

    /// Writes the entry of a refused request of a user or a token, or counts it if there were many. An entry that cannot be
    /// written is counted.
    pub async fn append_refused(&self, entry: Entry) {
        let audit = self.clone();
        to_its_end(async move { audit.append_or_count(entry).await }).await;
    }

    async fn append_or_count(&self, entry: Entry) {
        let (now, refusals) = (self.clock.tick(), &self.refusals);
        let is_allowed = refusals.allowances.lock().take(&entry.actor.id, now);
        if !is_allowed {
            self.count(entry, "", &refusals.principals).await;
        } else if let Err(error) = self.append(entry.clone()).await {
            log_unwritten(&error);
            refusals.principals.lock().defer(entry, "", now);
        }
    }

    async fn count(&self, entry: Entry, kind: &'static str, counts: &Mutex<Counts>) {
        let due = counts.lock().add(entry, kind, self.clock.tick());
        if let Some(entry) = due {
            self.write_counted((entry, kind, counts)).await;
        }
    }

    /// Writes due counts until `stop`, and then the rest.
    pub fn write_counted_refusals(&self, stop: CancellationToken) {
        let audit = self.clone();
        let ending = stop.clone();
        tasks::spawn_until_finished("audit of refused requests", stop, move || {
            let (audit, ending) = (audit.clone(), ending.clone());
            async move {
                while tokio::time::timeout(CHECK_INTERVAL, ending.cancelled())
                    .await
                    .is_err()
                {
                    let now = audit.clock.tick();
                    audit.write_all(|counts| counts.due(now)).await;
                }
                audit.write_all(Counts::drain).await;
            }
        });
    }

    async fn write_all(&self, take: impl Fn(&mut Counts) -> Vec<(Entry, &'static str)>) {
        for counts in self.refusals.all() {
            let due = take(&mut counts.lock());
            for (entry, kind) in due {
                self.write_counted((entry, kind, counts)).await;
            }
        }
    }

    async fn write_counted(&self, (entry, kind, counts): CountedEntry<'_>) {
        if let Err(error) = self.append(entry.clone()).await {
            log_unwritten(&error);
            counts.lock().put_back(entry, kind);
        }
    }
}

/// Also when the client of the refused request disconnects meanwhile.
async fn to_its_end(work: impl Future<Output = ()> + Send + 'static) {
    // A panic is logged by the task.
    let _ = tasks::spawn("refused request", CancellationToken::new(), work).await;
}

fn log_unwritten(error: &sqlx::Error) {
    tracing::error!("the audit entry of a refused request could not be written yet: {error}");
}
