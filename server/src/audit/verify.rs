//! Verifying: walks the chain and names the first row that is not as it was written.

use std::collections::BTreeMap;
use std::fmt;

use super::append::Row;
use super::{Audit, chain};

/// A record that holds together as far as it can be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    pub rows: i64,
    pub head: String,
    /// Exported heads that were found again. None: a record cut at its end would not show.
    pub heads: usize,
}

/// The first thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub seq: i64,
    pub kind: FaultKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// Its fields do not give its hash.
    Changed,
    /// The row of this number is not there, and later ones are.
    Missing,
    /// It does not follow the row before it.
    OutOfChain,
    /// A head says that there was such a row; the record ends before it.
    CutOff,
    /// A head says that this row had another hash.
    Rewritten,
}

impl FaultKind {
    pub const fn wire(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Missing => "missing",
            Self::OutOfChain => "out_of_chain",
            Self::CutOff => "cut_off",
            Self::Rewritten => "rewritten",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seq, kind } = self;
        match kind {
            FaultKind::Changed => write!(f, "row {seq} was changed: its fields do not give its hash"),
            FaultKind::Missing => write!(f, "row {seq} is missing"),
            FaultKind::OutOfChain => write!(f, "row {seq} does not follow row {}", seq - 1),
            FaultKind::CutOff => write!(f, "row {seq} was there and is gone: the record was cut off"),
            FaultKind::Rewritten => {
                write!(
                    f,
                    "row {seq} had another hash: the record was rewritten or forked"
                )
            }
        }
    }
}

/// Rows that a walk reads at once.
const ROWS_OF_ONE_READ: i64 = 5_000;

/// Where a walk has come to.
pub(super) struct Walk<'a> {
    pub(super) seq: i64,
    pub(super) hash: String,
    heads: &'a BTreeMap<i64, Vec<String>>,
    found: usize,
}

impl<'a> Walk<'a> {
    /// Behind this row; 0 and [`chain::GENESIS`] for the beginning.
    pub(super) fn behind(seq: i64, hash: String, heads: &'a BTreeMap<i64, Vec<String>>) -> Self {
        Self {
            seq,
            hash,
            heads,
            found: 0,
        }
    }

    /// At the end of the record: a head that was exported, or remembered, of a row that should follow.
    pub(super) fn end(&self) -> Result<(), Fault> {
        match self.heads.range(self.seq + 1..).next() {
            Some((&seq, _)) => Err(Fault {
                seq,
                kind: FaultKind::CutOff,
            }),
            None => Ok(()),
        }
    }

    pub(super) fn step(&mut self, row: &Row) -> Result<(), Fault> {
        let fault = |seq, kind| Err(Fault { seq, kind });
        if row.seq != self.seq + 1 {
            return fault(self.seq + 1, FaultKind::Missing);
        }
        if chain::hash(row) != row.hash {
            return fault(row.seq, FaultKind::Changed);
        }
        if row.prev_hash != self.hash {
            return fault(row.seq, FaultKind::OutOfChain);
        }
        if let Some(exported) = self.heads.get(&row.seq) {
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
    /// Walks every row. `heads` are exported ones, by row; without any, a record that was cut at its end or rewritten as
    /// a whole cannot be told from a whole one.
    ///
    /// # Errors
    /// The store does not answer. A fault found is not an error but the answer.
    pub async fn verify(
        &self,
        heads: &BTreeMap<i64, Vec<String>>,
        mut progress: impl FnMut(i64) + Send,
    ) -> Result<Result<Verified, Fault>, sqlx::Error> {
        let mut walk = Walk::behind(0, chain::GENESIS.to_owned(), heads);
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
            rows: walk.seq,
            head: walk.hash,
            heads: walk.found,
        }))
    }
}
