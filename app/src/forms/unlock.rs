//! The forced unlock as people do it: look, confirm, outcome. One page for the first step, one address for the others.
//!
//! Slow on purpose: it shows what would be ended and what ends with it, and asks for a reason and for the name. It decides
//! nothing; every check is the server's, again at each step.

mod alone;
pub mod confirm;
pub mod look;
pub mod missing;
mod outcome;
mod parts;
mod seen;
pub mod several;
mod wanted;

use chrono::{DateTime, Utc};
use domain::names::LockId;
use domain::release::Holding;
use domain::unlock::{TierReason, Unlock};

/// Why a step was not done, said at the top of the page that it was asked for from.
#[derive(Debug, Clone, Default)]
pub struct Refusal {
    pub text: String,
    pub mend: Option<String>,
    /// Whose holding was looked at, and whose it is now.
    pub holders: Option<(Option<Holding>, Option<Holding>)>,
}

/// One unlock for whoever looks at it, with what they typed last.
#[derive(Debug, Clone)]
pub struct Step {
    pub unlock: Unlock,
    pub now: DateTime<Utc>,
    /// Why a second person is needed; none where nothing is protected.
    pub tier_reason: Option<TierReason>,
    pub is_owner: bool,
    /// Why its owner could not confirm it any more.
    pub hindrance: Option<String>,
    pub proof: Proof,
    /// Why there is no second person yet.
    pub unapproved: Option<String>,
    pub may_approve: bool,
    pub may_review: bool,
    /// Why who looks does not count as second person, with the role for it.
    pub refused_as_second: Option<String>,
    pub approvers: Vec<String>,
    /// How many receivers are told of acting alone.
    pub receivers: u64,
    pub may_read_record: bool,
    /// This very page, for handing over.
    pub link: String,
    /// Acting alone was asked for.
    pub is_alone: bool,
    pub typed: Typed,
    pub refusal: Option<Refusal>,
}

impl Step {
    fn is_protected(&self) -> bool {
        self.tier_reason.is_some()
    }
}

/// How the reader has authenticated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// So many milliseconds ago, which still counts.
    Fresh(i64),
    /// Again, with the password.
    Password,
    /// Again, by signing in as before: at the identity provider, or here.
    SignIn { at_provider: bool },
    /// A program cannot.
    Never,
}

/// What was typed before a refusal, with what is wrong with it; empty at first. Never a password.
#[derive(Debug, Clone, Default)]
pub struct Typed {
    pub name: String,
    pub name_fault: Option<String>,
    pub second_reason: String,
    pub second_fault: Option<String>,
    pub password_fault: Option<String>,
}

/// The lock of an unlock.
fn id_of(unlock: &Unlock) -> LockId {
    LockId {
        backend: unlock.backend.clone(),
        source: unlock.source.clone(),
        resource: unlock.resource.clone(),
    }
}

/// Address of the step after the first.
pub fn path(id: &str) -> String {
    format!("/unlocks/{id}")
}
