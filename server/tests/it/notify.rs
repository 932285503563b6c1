//! Notifications, with everything real: receivers, an Alertmanager, both stores, servers that are killed.

mod alertmanager;
mod console;
mod delivery;
mod docs;
mod growth;
mod guarded;
mod pages;
mod sealed;
mod servers;
mod stage;
