//! The client that ships: the Rust crate, and `leasehold run`, against a real lease service over a link that breaks.

mod batch;
mod client_and_server;
mod docs;
mod faults;
mod lease;
mod lease_end;
mod network_faults;
mod patterns;
mod paused_holder;
mod run;
mod run_messages;
mod stale_holder;
