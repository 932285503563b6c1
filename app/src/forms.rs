//! Pages that are made on the server and need no script at all: signing in, and what a person does rarely and slowly.
//!
//! They are not part of the app that the browser hydrates, so they weigh nothing there. Each is a function from plain data
//! to a document; posting and redirecting is the server's.

pub mod alerts;
pub mod audit;
pub mod chrome;
pub mod contention;
pub mod docs;
pub mod document;
pub mod failed;
pub mod fencing;
pub mod field;
pub mod forbidden;
pub mod grants;
pub mod not_done;
pub mod prove;
pub mod receivers;
pub mod settings;
pub mod setup;
pub mod sign_in;
pub mod unlock;
