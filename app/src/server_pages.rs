//! Server-rendered pages without script: sign-in, setup, authenticating again.
//!
//! Not part of the hydrated app, so they add nothing to the wasm. Each is a function from plain
//! data to a document; the server handles posts and redirects.

pub mod field;
pub mod html_document;
pub mod reauthenticate;
pub mod setup;
pub mod sign_in;
