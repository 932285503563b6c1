//! The pages of Leasehold: Leptos components, server functions and the `Console` port.
//!
//! **Invariant:** nothing here names a database, a lock system, telemetry or a runtime; data comes through the port.

pub mod console;
