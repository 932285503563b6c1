//! The built-in lease service as a pure state machine: what a command does to one resource at one moment.
//!
//! Owns the rules (grant, renew, release, revoke, expire, fencing), the names they accept and the limits. Knows no
//! store, no clock and no queue: whoever drives it loads a [`ResourceState`], calls [`decide`] and writes the result.
//!
//! **Invariants**, checked by [`invariants::check`] on every step in every build: tokens only rise, by a grant and by
//! nothing else; a grant needs a free resource; a lease never outlives its cap.

pub mod decide;
pub mod fencing;
pub mod id;
pub mod invalid;
pub mod invariants;
pub mod limits;
pub mod metadata;
pub mod names;
pub mod scope;
pub mod state;
#[cfg(test)]
mod tests;
pub mod time;
pub mod ttl;

pub use decide::{Acquire, Command, Outcome, Refusal, Renew, Revoke, Step, decide};
pub use id::LeaseId;
pub use invalid::Invalid;
pub use metadata::Metadata;
pub use scope::{NameRange, Scope, ScopePiece};
pub use state::{Ending, How, Lease, ResourceState, Revocation};
pub use time::StoreTime;
pub use ttl::Ttl;
