//! Forced unlocks through the whole server: the two steps, every refusal, protected prefixes, audit entries, and
//! crashes.

pub(crate) mod blast_radius;
mod break_glass_alert;
mod bulk;
mod crash;
mod deadline;
mod force_released;
mod lease_end;
mod missing_generation;
mod name_confirmation;
mod not_found;
mod notifications;
mod outcomes;
pub(crate) mod pages;
mod protected;
mod protected_prefixes;
mod races;
mod redis;
mod refusals;
pub(crate) mod requests;
mod two_steps;
