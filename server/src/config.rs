//! One composed, documented configuration. Order of precedence: defaults < file < environment < flags.

pub mod backend;
pub mod etcd;
pub mod postgres;
pub mod redis;
pub mod tls;

pub use backend::{BackendConfig, SystemConfig};
