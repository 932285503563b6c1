//! The lease service over HTTP, the same tests on SQLite and on a real Postgres.

mod batch;
mod contract;
mod durability;
mod external_writer;
mod faults;
mod force_release;
mod input;
mod late_answers;
mod lease_server;
mod lifecycle;
mod metrics;
mod model;
mod move_to_etcd;
mod ownership;
mod partition;
mod reaper;
mod reported_ends;
mod retention;
mod schema;
mod store_members;
mod tokens;
mod traps;
mod upgrade;
mod waiters;
