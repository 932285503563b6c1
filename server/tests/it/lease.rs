//! The lease service over HTTP, the same tests on SQLite and on a real Postgres.

mod contract;
mod durability;
mod faults;
mod lifecycle;
mod lines;
mod model;
mod pace;
mod stage;
mod tokens;
