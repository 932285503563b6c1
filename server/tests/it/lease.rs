//! The lease service over HTTP, the same tests on SQLite and on a real Postgres.

#![expect(
    clippy::disallowed_methods,
    reason = "these tests are clients of their own: they spawn, and measure real time"
)]
#![expect(
    clippy::too_many_lines,
    reason = "a table of bad inputs, and a macro that runs one body on both stores"
)]

mod contract;
mod durability;
mod faults;
mod input;
mod lifecycle;
mod lines;
mod model;
mod pace;
mod stage;
mod tokens;
mod unlocking;
