//! Pure types and rules of Leasehold, compiled for the server and for the browser.
//!
//! **Invariant:** nothing here performs IO, reads a clock, or knows a framework. Time is an argument.

pub mod access;
pub mod alerts;
pub mod audit;
pub mod backend;
pub mod blockers;
pub mod charts;
pub mod contention;
pub mod diagnosis;
pub mod duration;
pub mod escape;
pub mod expiry_bar;
pub mod fencing_rejections;
pub mod fnv1a;
pub mod force_release;
pub mod format;
pub mod generation;
pub mod hex;
pub mod history;
pub mod lease;
pub mod limits;
pub mod lock;
pub mod lock_detail;
pub mod name_tree;
pub mod names;
pub mod next_steps;
pub mod notification;
pub mod observation;
pub mod overview;
pub mod query;
pub mod quorum;
pub mod renewal_interval;
pub mod reported;
pub mod safety;
pub mod shell_quote;
pub mod state;
pub mod tick;
pub mod time_format;
pub mod token;
pub mod unlock;
pub mod waits;
pub mod wire_enum;
