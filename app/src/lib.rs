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
pub mod done_messages;
pub mod focus;
pub mod format;
pub mod forms;
pub mod hydration;
pub mod keyboard_shortcuts;
pub mod layout;
pub mod links;
pub mod live;
pub mod navigation;
pub mod pages;
pub mod refusal_pages;
pub mod server_pages;
pub mod session;
