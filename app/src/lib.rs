//! The pages of Leasehold: Leptos components, server functions and the `Console` port.
//!
//! **Invariant:** nothing here names a database, a lock system, telemetry or a runtime; data comes through the port.

#[cfg(not(erase_components))]
compile_error!("build with the flags of .cargo/config.toml: RUSTFLAGS in the environment replaces them");

pub mod api;
pub mod app;
pub mod charts;
pub mod components;
pub mod console;
pub mod keyboard_shortcuts;
pub mod links;
pub mod live;
pub mod pages;
pub mod server_pages;
