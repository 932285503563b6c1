//! Encoding and errors of server functions. The functions themselves are in the files of their pages.
//!
//! Only pages use them; lock clients and scripts use the REST API over the same use cases.

pub mod codec;
pub mod error;

pub use error::ApiError;
