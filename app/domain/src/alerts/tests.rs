//! Rules played on a fake clock.

mod forgetting;
mod gaps;
mod many_locks;
mod played;
mod previewed;
mod same_moments;
mod started;
mod written;
