//! Fencing check: whether a resource should accept a write with a token.

use crate::token::FencingToken;

use super::state::ResourceState;
use super::store_time::StoreTime;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FencingDecision {
    /// The last token granted. Its lease may have ended: see `lease_state`.
    Accepted,
    /// A newer token was granted.
    Stale,
    /// The token was never granted.
    NeverIssued,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FencingAnswer {
    pub verdict: FencingDecision,
    pub presented: FencingToken,
    pub highest: FencingToken,
    /// `held`, `expired`, `released`, `revoked`, or `none` without any lease.
    pub lease_state: &'static str,
}

impl FencingDecision {
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
        FencingDecision::NeverIssued
    } else if presented < highest {
        FencingDecision::Stale
    } else {
        FencingDecision::Accepted
    };
    FencingAnswer {
        verdict,
        presented,
        highest,
        lease_state: state.lease.as_ref().map_or("none", |lease| lease.state_at(now)),
    }
}
