//! The Postgres adapter against real servers.

mod advisory;
mod blocked;
mod docs;
mod faults;
mod mapping;
mod presets;
mod rig;
mod sessions;
mod tables;
mod tls;
mod watch;
