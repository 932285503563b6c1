//! Notifications, with everything real: receivers, an Alertmanager, both stores, servers that are killed.

mod alertmanager;
mod console;
mod delivery;
mod docs;
mod growth;
pub(crate) mod notifier;
mod pacing;
mod pages;
mod rule_receivers;
mod secret_box;
mod servers;
mod ssrf_guard;
