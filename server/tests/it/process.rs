//! The process itself: what dies in it and begins again, what signals ask of it, and what it can be without.

mod ending;
mod evaluators;
mod fallen;
mod known_at_once;
mod later;
mod reload;
mod renewed;
pub(crate) mod running;
