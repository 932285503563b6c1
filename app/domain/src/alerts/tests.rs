//! Rules played on a fake clock.

mod forgetting;
mod played;
mod previewed;
mod started;
mod written;
