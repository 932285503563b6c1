//! Forced unlocks through the whole server: the two steps, every refusal, tiers, what the record says, and crashes.

mod bulk;
mod crash;
mod outcomes;
mod protected;
mod radius;
mod refusals;
mod stage;
mod told;
mod two_steps;
mod typed;
