//! The Postgres adapter against real servers.

mod advisory;
mod blocked;
mod docs;
mod ending;
mod faults;
mod mapping;
mod presets;
mod releasing;
mod rig;
mod sessions;
mod tables;
mod tls;
mod watch;
