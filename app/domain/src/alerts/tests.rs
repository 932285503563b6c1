//! Alert rules on a manual clock.

mod eviction;
mod gaps;
mod hidden_holders;
mod many_locks;
mod notified_labels;
mod notified_route;
mod parsing;
mod preview;
mod shared_locks;
mod simultaneous_events;
mod startup;
mod state_machine;
