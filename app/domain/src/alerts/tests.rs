//! Rules played on a fake clock.

mod played;
mod previewed;
mod started;
mod written;
