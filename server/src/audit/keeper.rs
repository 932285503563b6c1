//! Keeps an eye on the record while the server runs: new rows are verified within seconds, every row again now and then.
//!
//! What it has verified it remembers, so a record that is cut at its end or rewritten behind its back shows without any
//! exported head. Deliberately no walk on demand: a page costs no more than the memory of the last one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::observation::Tick;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::verify::{Fault, FaultKind, Walk};
use super::{Audit, chain};
use crate::clock::Clock;
use crate::tasks;

/// How soon after its commit a row is verified, at the latest.
pub const NEW_ROWS_EVERY: Duration = Duration::from_secs(5);
/// How often every row is verified again.
pub const ALL_ROWS_EVERY: Duration = Duration::from_secs(6 * 3600);
/// Rows of one step, and the rest after it: a long walk leaves the machine to those who work.
const ROWS_OF_ONE_STEP: i64 = 1_000;
const REST: Duration = Duration::from_millis(2);

/// As far as the record is known to be as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainState {
    /// Rows 1 to this one, 0 for none yet, and the hash of the last of them.
    pub rows: i64,
    pub hash: String,
    /// When the walk was at the end of the record last; none before the first one is.
    pub checked_at: Option<DateTime<Utc>>,
    /// When the last walk over every row ended.
    pub walked_at: Option<DateTime<Utc>>,
    /// The first row that is not.
    pub fault: Option<Fault>,
    /// The store did not answer the last time.
    pub is_blind: bool,
}

pub struct Keeper {
    audit: Audit,
    clock: Clock,
    state: watch::Sender<ChainState>,
}

impl Keeper {
    /// Begins with every row, and goes on until `stop`.
    pub fn start(audit: Audit, clock: Clock, stop: CancellationToken) -> Arc<Self> {
        let keeper = Arc::new(Self {
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
        let own = keeper.clone();
        tasks::keep("eye on the audit record", stop, move || {
            let own = own.clone();
            async move { own.keep().await }
        });
        keeper
    }

    pub fn state(&self) -> ChainState {
        self.state.borrow().clone()
    }

    async fn keep(&self) {
        let mut walked: Option<Tick> = None;
        loop {
            let now = self.clock.tick();
            let is_due = walked.is_none_or(|then| now.since(then) >= ms(ALL_ROWS_EVERY));
            match self.round(is_due).await {
                Ok(()) if is_due => walked = Some(now),
                Ok(()) => {}
                Err(error) => {
                    tracing::warn!("the audit record cannot be verified for now: {error}");
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
                tracing::error!(
                    audit.seq = fault.seq,
                    "the audit record is not as it was written: {fault}"
                );
                self.state.send_modify(|state| {
                    state.fault = Some(fault);
                    state.is_blind = false;
                });
            }
        }
        Ok(())
    }

    /// From the first row. What was verified before must come by again.
    async fn walk_all(&self, known: &ChainState) -> Result<Walked, sqlx::Error> {
        let mut remembered = BTreeMap::new();
        if known.checked_at.is_some() && known.rows > 0 {
            remembered.insert(known.rows, vec![known.hash.clone()]);
        }
        let is_first = known.checked_at.is_none();
        let walk = Walk::behind(0, chain::GENESIS.to_owned(), &remembered);
        self.walk(walk, |seq, hash| {
            if is_first {
                self.state
                    .send_modify(|state| (state.rows, state.hash) = (seq, hash.to_owned()));
            }
        })
        .await
    }

    /// From the last row that was verified, which must still stand there.
    async fn walk_on(&self, known: &ChainState) -> Result<Walked, sqlx::Error> {
        let nothing = BTreeMap::new();
        if known.rows > 0 {
            let last = self.audit.after(known.rows - 1, 1).await?;
            let kind = match last.first() {
                Some(row) if row.seq == known.rows && row.hash == known.hash => None,
                Some(row) if row.seq == known.rows => Some(FaultKind::Rewritten),
                Some(_) => Some(FaultKind::Missing),
                None => Some(FaultKind::CutOff),
            };
            if let Some(kind) = kind {
                return Ok(Err(Fault {
                    seq: known.rows,
                    kind,
                }));
            }
        }
        let walk = Walk::behind(known.rows, known.hash.clone(), &nothing);
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

/// The last row and its hash, or what is wrong.
type Walked = Result<(i64, String), Fault>;

fn ms(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
