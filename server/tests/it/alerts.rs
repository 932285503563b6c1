//! Alerts on real stores: evaluated, told once, taken over, edited, silenced.

mod console;
mod floods;
mod idle;
mod outage;
mod preview;
mod preview_parts;
mod servers;
mod ttl_seen;
