//! Every state that the console offers, provoked on real systems and read back from a running server.

mod dead_holders;
mod long_held;
mod reach;
mod surfaces;
mod systems;
mod two_believers;
