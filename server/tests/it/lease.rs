//! The lease service over HTTP, the same tests on SQLite and on a real Postgres.

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
mod ownership;
mod reaper;
mod reported_ends;
mod stage;
mod tokens;
mod traps;
mod unlocking;
mod upgrade;
