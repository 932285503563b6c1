//! The lease service over HTTP, the same tests on SQLite and on a real Postgres.

mod contract;
mod durability;
mod elsewhere;
mod faults;
mod input;
mod lifecycle;
mod lines;
mod metrics;
mod model;
mod stage;
mod tokens;
