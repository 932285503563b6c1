//! Background verification of the audit log: new entries within seconds, all entries every few hours.
//!
//! Keeps the verified position in memory, so truncation or rewriting during operation is detected without exported
//! checkpoints. There is no verification on demand: a page shows the latest result.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::duration::millis;
use domain::tick::Tick;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::verify::{ChainFault, FaultKind, Walk};
use super::{Audit, chain};
use runtime::clock::Clock;
use runtime::tasks;

/// Maximum delay until a committed entry is verified.
pub const NEW_ROWS_EVERY: Duration = Duration::from_secs(5);
/// Interval between verifications of all entries.
pub const ALL_ROWS_EVERY: Duration = Duration::from_secs(6 * 3600);
/// Entries per step, with a pause after it, so that a full verification does not load the machine.
const ROWS_OF_ONE_STEP: i64 = 1_000;
const REST: Duration = Duration::from_millis(2);

/// State of the verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainState {
    /// Entries 1 to this one are verified (0: none), with the hash of the last one.
    pub rows: i64,
    pub hash: String,
    /// When the verification last reached the end of the log; `None` before the first time.
    pub checked_at: Option<DateTime<Utc>>,
    /// When all entries were last verified.
    pub walked_at: Option<DateTime<Utc>>,
    /// The first invalid entry.
    pub fault: Option<ChainFault>,
    /// The store did not answer the last query.
    pub is_blind: bool,
}

pub struct ChainVerifier {
    audit: Audit,
    clock: Clock,
    state: watch::Sender<ChainState>,
}

impl ChainVerifier {
    /// Starts with a full verification and continues until `stop`.
    pub fn start(audit: Audit, clock: Clock, stop: CancellationToken) -> Arc<Self> {
        let verifier = Arc::new(Self {
            audit,
            clock,
            state: watch::Sender::new(ChainState {
                rows: 0,
                hash: chain::GENESIS.to_owned(),
                checked_at: None,
                walked_at: None,
                fault: None,
                is_blind: false,
            }),
        });
        let task_verifier = verifier.clone();
        tasks::spawn_supervised("audit log verifier", stop, move || {
            let task_verifier = task_verifier.clone();
            async move { task_verifier.run().await }
        });
        verifier
    }

    pub fn state(&self) -> ChainState {
        self.state.borrow().clone()
    }

    async fn run(&self) {
        let mut walked: Option<Tick> = None;
        loop {
            let now = self.clock.tick();
            let is_due = walked.is_none_or(|then| now.since(then) >= millis(ALL_ROWS_EVERY));
            match self.round(is_due).await {
                Ok(()) if is_due => walked = Some(now),
                Ok(()) => {}
                Err(error) => {
                    tracing::warn!("the audit log cannot be verified now: {error}");
                    self.state.send_modify(|state| state.is_blind = true);
                }
            }
            tokio::time::sleep(NEW_ROWS_EVERY).await;
        }
    }

    async fn round(&self, every_row: bool) -> Result<(), sqlx::Error> {
        let known = self.state();
        if known.fault.is_some() && !every_row {
            return Ok(());
        }
        let found = if every_row {
            self.walk_all(&known).await?
        } else {
            self.walk_on(&known).await?
        };
        match found {
            Ok((rows, hash)) => {
                let now = Some(self.clock.now().wall);
                self.state.send_modify(|state| {
                    (state.rows, state.hash) = (rows, hash);
                    state.checked_at = now;
                    if every_row {
                        state.walked_at = now;
                    }
                    (state.fault, state.is_blind) = (None, false);
                });
            }
            Err(fault) => {
                tracing::error!(audit.seq = fault.seq, "the audit log was altered: {fault}");
                self.state.send_modify(|state| {
                    state.fault = Some(fault);
                    state.is_blind = false;
                });
            }
        }
        Ok(())
    }

    /// Verifies from the first entry; the previously verified position must be passed again.
    async fn walk_all(&self, known: &ChainState) -> Result<Walked, sqlx::Error> {
        let mut checkpoints = BTreeMap::new();
        if known.checked_at.is_some() && known.rows > 0 {
            checkpoints.insert(known.rows, vec![known.hash.clone()]);
        }
        let is_first = known.checked_at.is_none();
        let walk = Walk::after(0, chain::GENESIS.to_owned(), &checkpoints);
        self.walk(walk, |seq, hash| {
            if is_first {
                self.state
                    .send_modify(|state| (state.rows, state.hash) = (seq, hash.to_owned()));
            }
        })
        .await
    }

    /// Continues from the last verified entry, which must be unchanged.
    async fn walk_on(&self, known: &ChainState) -> Result<Walked, sqlx::Error> {
        let no_checkpoints = BTreeMap::new();
        if known.rows > 0 {
            let last = self.audit.after(known.rows - 1, 1).await?;
            let kind = match last.first() {
                Some(row) if row.seq == known.rows && row.hash == known.hash => None,
                Some(row) if row.seq == known.rows => Some(FaultKind::Rewritten),
                Some(_) => Some(FaultKind::Missing),
                None => Some(FaultKind::CutOff),
            };
            if let Some(kind) = kind {
                return Ok(Err(ChainFault {
                    seq: known.rows,
                    kind,
                }));
            }
        }
        let walk = Walk::after(known.rows, known.hash.clone(), &no_checkpoints);
        self.walk(walk, |_, _| {}).await
    }

    async fn walk(
        &self,
        mut walk: Walk<'_>,
        mut progress: impl FnMut(i64, &str),
    ) -> Result<Walked, sqlx::Error> {
        loop {
            let rows = self.audit.after(walk.seq, ROWS_OF_ONE_STEP).await?;
            for row in &rows {
                if let Err(fault) = walk.step(row) {
                    return Ok(Err(fault));
                }
            }
            progress(walk.seq, &walk.hash);
            if i64::try_from(rows.len()).unwrap_or(i64::MAX) < ROWS_OF_ONE_STEP {
                break;
            }
            tokio::time::sleep(REST).await;
        }
        Ok(walk.end().map(|()| (walk.seq, walk.hash)))
    }
}

/// The last entry and its hash, or the fault.
type Walked = Result<(i64, String), ChainFault>;
