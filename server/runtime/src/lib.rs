//! Clock, random numbers, tasks, telemetry and the SQL store.

pub mod change_signal;
pub mod client_network;
pub mod clock;
pub mod db;
pub mod disk;
pub mod random;
pub mod shutdown;
pub mod tasks;
pub mod telemetry;
pub mod tls_client;
pub mod webhook_signature;
