//! Every state that the console offers, provoked on real systems and read back from a running server.

mod dead_holders;
mod dual_owner;
mod every_state;
mod heartbeats;
mod long_held;
mod no_locks;
mod outages;
mod state_agreement;
mod systems;
