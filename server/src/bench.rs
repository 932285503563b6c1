//! `leasehold bench`: the goals beside what was measured, on this machine.

pub mod audit;
pub mod disk;
pub mod error;
pub mod expiry;
pub mod figure;
mod fill;
pub mod history;
mod http;
pub mod inventory;
pub mod load;
pub mod pace;
pub mod pages;
pub mod preview;
pub mod redis_pass;
pub mod renewals;
mod served;
pub mod soak;
mod stopwatch;
pub mod waiters;
