//! The audit record on both stores: appended one after the other, unchangeable, and every tampering found.

mod append;
mod stage;
mod tamper;
