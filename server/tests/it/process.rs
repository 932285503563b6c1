//! The process: restarts of failed tasks, signals, and missing dependencies.

mod certificate_renewal;
mod evaluators;
mod known_at_once;
mod many_locks;
mod reload;
mod shutdown;
mod start_order;
pub(crate) mod startup;
mod task_panics;
