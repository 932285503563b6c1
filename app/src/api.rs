//! Server functions, one file per resource: authenticate, parse, call the port, answer.
//!
//! They are the pages' own way to data; lock clients and scripts use the REST API over the same port.

pub mod backends;
pub mod error;
pub mod inventory;
pub mod lock;
pub mod overview;
pub mod payload;
pub mod prefixes;

pub use error::ApiError;
