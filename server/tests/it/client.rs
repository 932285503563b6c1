//! The client that ships: the Rust crate, and `leasehold run`, against a real lease service over a link that breaks.

mod docs;
mod ends;
mod faults;
mod lease;
mod links;
mod patterns;
mod paused;
mod run;
mod world;
mod zombie;
