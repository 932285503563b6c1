//! Forced unlocks through the whole server: the two steps, every refusal, tiers, what the record says, and crashes.

mod alarmed;
mod bulk;
mod crash;
mod force_released;
mod home;
mod outcomes;
pub(crate) mod pages;
mod protected;
mod raced;
pub(crate) mod radius;
mod refusals;
pub(crate) mod stage;
mod tiers;
mod told;
mod two_steps;
mod typed;
mod unseen;
