//! The Leasehold server: adapters, inventory, HTTP, pages and command line.
//!
//! Direction of imports: `http → console → inventory → backends → domain`; nothing below imports `http` or
//! `console`.

pub mod alerts;
pub mod audit;
pub mod backends;
pub mod bench;
pub mod cli;
pub mod client_network;
pub mod clock;
pub mod config;
pub mod console;
pub mod db;
pub mod demo;
pub mod disk;
pub mod doctor;
pub mod history;
pub mod http;
pub mod identity;
pub mod inventory;
pub mod lease;
pub mod ledger;
pub mod notify;
pub mod observer;
pub mod serve;
pub mod shutdown;
pub mod tasks;
pub mod telemetry;
pub mod throwaway;
pub mod unlock;
