//! Timelines, hold times and the token ledger as pages: complete without a script, cut to what the viewer may see.

mod ledger;
mod lock;
mod past;
mod stage;
