//! Rules played on a fake clock.

mod forgetting;
mod gaps;
mod played;
mod previewed;
mod same_moments;
mod started;
mod written;
