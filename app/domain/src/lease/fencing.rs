//! Whether a resource should accept a write under a token.

use crate::token::FencingToken;

use super::state::ResourceState;
use super::time::StoreTime;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The last token granted. Says nothing of whether its lease still lives: `lease_state` does.
    Accepted,
    /// A newer token was granted.
    Stale,
    /// No grant ever carried it.
    NeverIssued,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FencingAnswer {
    pub verdict: Verdict,
    pub presented: FencingToken,
    pub highest: FencingToken,
    /// `held`, `expired`, `released`, `revoked`, or `none` when there never was a lease.
    pub lease_state: &'static str,
}

impl Verdict {
    pub const fn reason(self) -> Option<&'static str> {
        match self {
            Self::Accepted => None,
            Self::Stale => Some("stale"),
            Self::NeverIssued => Some("never_issued"),
        }
    }
}

pub fn check(state: &ResourceState, presented: FencingToken, now: StoreTime) -> FencingAnswer {
    let highest = state.last_token;
    let verdict = if highest == FencingToken::default() || presented > highest {
        Verdict::NeverIssued
    } else if presented < highest {
        Verdict::Stale
    } else {
        Verdict::Accepted
    };
    FencingAnswer {
        verdict,
        presented,
        highest,
        lease_state: state.lease.as_ref().map_or("none", |lease| lease.state_at(now)),
    }
}
