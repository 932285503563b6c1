//! Alerts on real stores: evaluated, told once, taken over, edited, silenced.

mod console;
mod preview;
mod servers;
