//! The audit record on both stores: appended one after the other, unchangeable, and every tampering found; read over HTTP
//! and on its pages, by those who may.

mod alone;
mod append;
mod console;
mod contract;
mod exports;
mod pages;
mod paging;
mod scopes;
mod stage;
mod tamper;
