//! The process: restarts of failed tasks, signals, and missing dependencies.

mod certificate_renewal;
mod evaluators;
mod many_locks;
mod new_credentials;
mod reload;
pub(crate) mod running_server;
mod shutdown;
mod start_order;
mod task_panics;
