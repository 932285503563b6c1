//! Pure types and rules of Leasehold, compiled for the server and for the browser.
//!
//! **Invariant:** nothing here performs IO, reads a clock, or knows a framework. Time is an argument.

pub mod access;
pub mod advice;
pub mod alerts;
pub mod audit;
pub mod backend;
pub mod blockers;
pub mod cadence;
pub mod charts;
pub mod contention;
pub mod detail;
pub mod diagnosis;
pub mod escape;
pub mod generation;
pub mod hex;
pub mod history;
pub mod human;
pub mod known;
pub mod lease;
pub mod ledger;
pub mod limits;
pub mod lock;
pub mod moment;
pub mod names;
pub mod notice;
pub mod observation;
pub mod overview;
pub mod query;
pub mod release;
pub mod runway;
pub mod safety;
pub mod segments;
pub mod shell;
pub mod stamp;
pub mod state;
pub mod token;
pub mod unlock;
