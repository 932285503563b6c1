//! The Leasehold server: adapters, inventory, HTTP, pages and command line.
//!
//! Direction of imports: `http → console → inventory → backends → domain`; nothing below imports `http` or
//! `console`.

pub mod backends;
pub mod clock;
pub mod config;
pub mod console;
pub mod http;
pub mod inventory;
pub mod lease;
pub mod observer;
pub mod tasks;
pub mod throwaway;
