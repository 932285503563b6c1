//! The process: restarts of failed tasks, signals, and missing dependencies.

mod certificate_renewal;
mod evaluators;
mod known_at_once;
mod many_locks;
mod reload;
pub(crate) mod running_server;
mod shutdown;
mod start_order;
mod task_panics;
