//! Server functions, one file per resource: authenticate, parse, call the port, answer.
//!
//! Only pages use them; lock clients and scripts use the REST API over the same port.

pub mod alerts;
pub mod audit;
pub mod backends;
pub mod codec;
pub mod contention;
pub mod docs;
pub mod error;
pub mod fencing;
pub mod inventory;
pub mod lock;
pub mod overview;
pub mod prefixes;
pub mod receivers;
pub mod rules;
pub mod settings;
pub mod unlock;
pub mod waits;

pub use error::ApiError;
