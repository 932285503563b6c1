//! The Leasehold server: adapters, inventory, HTTP, pages and command line.
//!
//! The crates below enforce the direction of imports: `leasehold → inventory → backends → lease → etcd-cluster → runtime →
//! config → domain`. Inside this crate nothing below `console` imports `http` or `console`.

pub mod alerts;
pub mod audit;
pub(crate) mod bounded_body;
pub mod cli;
pub mod console;
pub mod contention;
pub mod doctor;
pub mod fencing_rejections;
pub mod history;
pub mod http;
pub mod identity;
pub(crate) mod janitor;
pub(crate) mod leader_election;
pub mod notify;
pub mod observer;
pub mod serve;
pub mod unlock;
