//! `leasehold bench`: the goals beside what was measured, on this machine.

pub mod figure;
pub mod inventory;
pub mod redis_pass;
