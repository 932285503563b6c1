//! Every route of the server.

pub mod pages;
