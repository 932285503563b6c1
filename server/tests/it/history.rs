//! What happened to locks: written down, kept over a restart, by one of several servers, with gaps told and old rows gone.

mod contention;
mod recording;
mod servers;
mod stage;
mod sums;
mod waits;
