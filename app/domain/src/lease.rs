//! The built-in lease service as a pure state machine: the effect of a command on one resource
//! at one moment.
//!
//! Owns the rules (grant, renew, release, revoke, expire, fencing), the names they accept and
//! the limits. Knows no store, clock or queue: the caller loads a [`ResourceState`], calls
//! [`transition`] and writes the result.
//!
//! **Invariants**, checked by [`invariants::check`] on every step in every build: tokens only
//! rise, and only by a grant; a grant needs a free resource; a lease never outlives its cap.

pub mod fencing;
pub mod id;
pub mod invariants;
pub mod limits;
pub mod metadata;
pub mod names;
pub mod scope;
pub mod state;
pub mod store_time;
#[cfg(test)]
mod tests;
pub mod transition;
pub mod ttl;
pub mod validation_error;

pub use id::{LeaseId, SHARD_BITS_MAX};
pub use metadata::Metadata;
pub use scope::{NameRange, Scope, ScopePiece};
pub use state::{EndCause, Lease, LeaseEnd, ResourceState, Revocation};
pub use store_time::StoreTime;
pub use transition::{Acquire, Command, Refusal, Renew, Revoke, Transition, TransitionOutcome, transition};
pub use ttl::Ttl;
pub use validation_error::ValidationError;
