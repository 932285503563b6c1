//! People and machines at a real guarded server: who gets in, what they see, what they may do, and what is recorded.

mod doors;
mod machines;
mod settings;
mod signing_in;
pub(crate) mod stage;
mod standing;
mod successors;
mod tenants;
