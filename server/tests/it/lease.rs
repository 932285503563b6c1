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
mod cut_off;
mod durability;
mod elsewhere;
mod faults;
mod input;
mod late;
mod lifecycle;
mod lines;
mod metrics;
mod model;
mod reaper;
mod stage;
mod tokens;
mod traps;
