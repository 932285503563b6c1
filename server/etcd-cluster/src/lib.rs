//! What the etcd adapter and the lease store share of etcd: the members of a cluster as each reports itself, and errors
//! of its calls.
//!
//! Reads no key and writes nothing.

mod call_error;
mod members;
mod metrics_page;
mod status;

pub use call_error::{GrpcCode, error_text};
pub use members::{ClusterAccess, ClusterReader};
