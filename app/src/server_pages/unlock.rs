//! Forced unlock pages: review, confirm, result. One URL for the first step, one for the
//! others.
//!
//! Deliberately slow: shows what would end and asks for a reason and for the name. Decides
//! nothing; the server checks again at each step.

mod break_glass;
pub mod bulk;
pub mod confirm;
mod holder_summary;
mod layout;
mod nodes;
pub mod not_found;
mod requirements;
mod result;
pub mod review;

use chrono::{DateTime, Utc};
use domain::force_release::Holding;
use domain::names::LockId;
use domain::unlock::{ProtectionReason, Unlock};

/// Why a step was refused, shown at the top of its page.
#[derive(Debug, Clone, Default)]
pub struct UnlockRefusal {
    pub text: String,
    pub remedy: Option<String>,
    /// The reviewed holding and the current one.
    pub holders: Option<(Option<Holding>, Option<Holding>)>,
}

/// One unlock with the user's last input.
#[derive(Debug, Clone)]
pub struct Step {
    pub unlock: Unlock,
    pub now: DateTime<Utc>,
    /// Why a second approver is needed; `None` without protection.
    pub protection_reason: Option<ProtectionReason>,
    pub is_owner: bool,
    /// Why its owner can no longer confirm it.
    pub hindrance: Option<String>,
    pub proof: Proof,
    /// Why there is no second approver yet.
    pub unapproved: Option<String>,
    pub may_approve: bool,
    pub may_review: bool,
    /// Why the user does not count as second approver, with the required role.
    pub refused_as_second: Option<String>,
    pub approvers: Vec<String>,
    /// Number of receivers that a break-glass unlock notifies.
    pub receivers: u64,
    pub may_read_record: bool,
    /// URL of this page, for the second approver.
    pub link: String,
    /// Break-glass was requested.
    pub is_alone: bool,
    pub typed: StepInput,
    pub refusal: Option<UnlockRefusal>,
}

impl Step {
    fn is_protected(&self) -> bool {
        self.protection_reason.is_some()
    }
}

/// How the user has authenticated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// This many milliseconds ago, which is recent enough.
    Fresh(i64),
    /// Again, with the password.
    Password,
    /// Again, by the same method: at the identity provider, or here.
    SignIn { at_provider: bool },
    /// A program cannot.
    Never,
}

/// Input of a rejected form with its errors; empty at first. Never a password.
#[derive(Debug, Clone, Default)]
pub struct StepInput {
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

/// URL of the steps after the first.
pub fn path(id: &str) -> String {
    format!("/unlocks/{id}")
}
