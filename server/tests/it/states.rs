//! Every state that the console offers, provoked on real systems and read back from a running server.

mod dead_holders;
mod dual_owner;
mod heartbeats;
mod long_held;
mod outages;
mod reach;
mod surfaces;
mod systems;
