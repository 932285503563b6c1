//! Judges a finished history. Pure: no clock, no server, no file.
//!
//! Each invariant has a file: tokens (I1), intervals (I2), chain (I3), register (I4), life (I5), ledger (I6), reported_ends
//! (I7).

mod chain;
mod intervals;
mod ledger;
mod life;
mod planted;
mod register;
mod reported_ends;
mod tokens;

use std::fmt;

use super::history::{Call, History, OperationKind, RecordedAnswer};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Invariant {
    /// Tokens strictly increase per resource in grant order over the whole run.
    I1,
    /// Live intervals never overlap in commit order.
    I2,
    /// Every answer fits one order of events per resource.
    I3,
    /// A register that compares tokens loses no update.
    I4,
    /// A dead client's lock is free in time; no lease outlives its cap.
    I5,
    /// Each rejection is recorded once.
    I6,
    /// No answer names a lease as live whose end was reported before the call began.
    I7,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) invariant: Invariant,
    pub(super) what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.invariant, self.what)
    }
}

/// Every violation found; an empty list means that the history breaks none of the seven invariants.
pub(super) fn check(history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    let parts: [(Invariant, Vec<String>); 7] = [
        (Invariant::I1, tokens::check(history)),
        (Invariant::I2, intervals::check(history)),
        (Invariant::I3, chain::check(history)),
        (Invariant::I4, register::check(history)),
        (Invariant::I5, life::check(history)),
        (Invariant::I6, ledger::check(history)),
        (Invariant::I7, reported_ends::check(history)),
    ];
    for (invariant, texts) in parts {
        found.extend(texts.into_iter().map(|what| Violation { invariant, what }));
    }
    found
}

/// Updates that a register without comparison lost.
pub(super) fn lost_without_tokens(history: &History) -> usize {
    register::lost(history, false).len()
}

/// Acquires that were granted, with their requests.
fn grants(history: &History) -> impl Iterator<Item = Grant<'_>> {
    history
        .calls
        .iter()
        .filter_map(|call| match (&call.what, &call.answer) {
            (
                OperationKind::Acquire {
                    resource,
                    owner,
                    ttl_ms,
                },
                RecordedAnswer::Granted { lease, token },
            ) => Some(Grant {
                call,
                resource,
                owner,
                ttl_ms: *ttl_ms,
                lease,
                token: *token,
            }),
            _ => None,
        })
}

struct Grant<'a> {
    call: &'a Call,
    resource: &'a str,
    owner: &'a str,
    ttl_ms: i64,
    lease: &'a str,
    token: u64,
}
