//! The audit log on both stores: appended in sequence, immutable, with detection of every
//! tampering; read over HTTP and on its pages, with permission.

mod append;
mod audit_server;
mod break_glass;
mod chain;
mod contract;
mod exports;
mod pages;
mod paging;
mod scopes;
mod tamper;
