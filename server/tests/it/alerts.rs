//! Alerts on real stores: evaluated, notified once, taken over, edited, silenced.

mod console;
mod demo_replay;
mod ended_alerts;
mod floods;
mod idle_load;
mod observed_ttl;
mod outage;
mod page;
mod preview;
mod preview_parts;
mod receivers;
mod servers;
mod unreadable_rows;
mod windows;
