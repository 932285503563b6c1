//! Pages that are made on the server and need no script at all: signing in, and what a person does rarely and slowly.
//!
//! They are not part of the app that the browser hydrates, so they weigh nothing there. Each is a function from plain data
//! to a document; posting and redirecting is the server's.

pub mod chrome;
pub mod document;
pub mod field;
pub mod grants;
pub mod settings;
pub mod setup;
pub mod sign_in;
