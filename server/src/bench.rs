//! `leasehold bench`: the goals beside what was measured, on this machine.

pub mod error;
pub mod figure;
mod http;
pub mod inventory;
pub mod load;
pub mod pace;
pub mod redis_pass;
mod served;
mod stopwatch;
