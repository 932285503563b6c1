//! Verification: walks the chain and reports the first invalid entry.

use std::collections::BTreeMap;
use std::fmt;

use super::append::AuditRecord;
use super::{Audit, chain};

/// Result of a verification without a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    pub entries: i64,
    pub last_hash: String,
    /// Exported checkpoints that were found. 0: a truncated log would not be detected.
    pub checkpoints: usize,
}

/// The first fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainFault {
    pub seq: i64,
    pub kind: FaultKind,
}

domain::wire_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum FaultKind {
        /// Its fields do not give its hash.
        Changed = "changed",
        /// The entry with this number is missing, and later ones exist.
        Missing = "missing",
        /// It does not refer to the hash of the previous entry.
        OutOfChain = "out_of_chain",
        /// A checkpoint has this entry; the log ends before it.
        CutOff = "cut_off",
        /// A checkpoint has another hash for this entry.
        Rewritten = "rewritten",
    }
}

impl fmt::Display for ChainFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seq, kind } = self;
        match kind {
            FaultKind::Changed => write!(f, "entry {seq} was changed: its hash does not match its fields"),
            FaultKind::Missing => write!(f, "entry {seq} is missing"),
            FaultKind::OutOfChain => write!(f, "entry {seq} does not link to the hash of entry {}", seq - 1),
            FaultKind::CutOff => write!(
                f,
                "entry {seq} was in a checkpoint and is missing: the audit log was truncated"
            ),
            FaultKind::Rewritten => {
                write!(
                    f,
                    "entry {seq} has another hash than in a checkpoint: the audit log was rewritten or forked"
                )
            }
        }
    }
}

/// Entries read at once.
const ROWS_OF_ONE_READ: i64 = 5_000;

/// Position of a verification.
pub(super) struct Walk<'a> {
    pub(super) seq: i64,
    pub(super) hash: String,
    checkpoints: &'a BTreeMap<i64, Vec<String>>,
    found: usize,
}

impl<'a> Walk<'a> {
    /// Starts after this entry; 0 and [`chain::GENESIS`] for the beginning.
    pub(super) fn after(seq: i64, hash: String, checkpoints: &'a BTreeMap<i64, Vec<String>>) -> Self {
        Self {
            seq,
            hash,
            checkpoints,
            found: 0,
        }
    }

    /// At the end of the log: reports a checkpoint of an entry that should follow.
    pub(super) fn end(&self) -> Result<(), ChainFault> {
        match self.checkpoints.range(self.seq + 1..).next() {
            Some((&seq, _)) => Err(ChainFault {
                seq,
                kind: FaultKind::CutOff,
            }),
            None => Ok(()),
        }
    }

    pub(super) fn step(&mut self, row: &AuditRecord) -> Result<(), ChainFault> {
        let fault = |seq, kind| Err(ChainFault { seq, kind });
        if row.seq != self.seq + 1 {
            return fault(self.seq + 1, FaultKind::Missing);
        }
        if chain::hash(row) != row.hash {
            return fault(row.seq, FaultKind::Changed);
        }
        if row.prev_hash != self.hash {
            return fault(row.seq, FaultKind::OutOfChain);
        }
        if let Some(exported) = self.checkpoints.get(&row.seq) {
            if exported.iter().any(|hash| *hash != row.hash) {
                return fault(row.seq, FaultKind::Rewritten);
            }
            self.found += 1;
        }
        self.seq = row.seq;
        self.hash.clone_from(&row.hash);
        Ok(())
    }
}

impl Audit {
    /// Verifies every entry. `checkpoints` are exported checkpoints by number; without any, a log that was truncated or
    /// rewritten as a whole looks valid.
    ///
    /// # Errors
    /// The store does not answer. A fault is a result, not an error.
    pub async fn verify(
        &self,
        checkpoints: &BTreeMap<i64, Vec<String>>,
        mut progress: impl FnMut(i64) + Send,
    ) -> Result<Result<Verified, ChainFault>, sqlx::Error> {
        let mut walk = Walk::after(0, chain::GENESIS.to_owned(), checkpoints);
        loop {
            let rows = self.after(walk.seq, ROWS_OF_ONE_READ).await?;
            if rows.is_empty() {
                break;
            }
            for row in &rows {
                if let Err(fault) = walk.step(row) {
                    return Ok(Err(fault));
                }
            }
            progress(walk.seq);
        }
        Ok(walk.end().map(|()| Verified {
            entries: walk.seq,
            last_hash: walk.hash,
            checkpoints: walk.found,
        }))
    }
}
