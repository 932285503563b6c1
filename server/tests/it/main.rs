//! The one integration test binary: it links once. Each topic is a module; what several topics use is in `support`.
//! Servers are real, on free ports, and end with the test; a missing one fails the test with the command that installs it.
//!
//! `cfg(test)` on each module, always true here, lets clippy know that helpers may unwrap too.

#[cfg(test)]
mod alerts;
#[cfg(test)]
mod attacks;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod auth;
#[cfg(test)]
mod charts;
#[cfg(test)]
mod cli;
#[cfg(test)]
mod client;
#[cfg(test)]
mod consul_adapter;
#[cfg(test)]
mod demo_workload;
#[cfg(test)]
mod docs;
#[cfg(test)]
mod doctor;
#[cfg(test)]
mod etcd_adapter;
#[cfg(test)]
mod history;
#[cfg(test)]
mod http_inventory;
#[cfg(test)]
mod inventory_consistency;
#[cfg(test)]
mod lease;
#[cfg(test)]
mod linearizability;
#[cfg(test)]
mod listener;
#[cfg(test)]
mod notify;
#[cfg(test)]
mod oidc;
#[cfg(test)]
mod openapi_fuzz;
#[cfg(test)]
mod postgres_adapter;
#[cfg(test)]
mod process;
#[cfg(test)]
mod proxy;
#[cfg(test)]
mod redis_adapter;
#[cfg(test)]
mod security;
#[cfg(test)]
mod states;
#[cfg(test)]
mod support;
#[cfg(test)]
mod telemetry;
#[cfg(test)]
mod tidy;
#[cfg(test)]
mod tour;
#[cfg(test)]
mod unlock;
#[cfg(test)]
mod waits;
#[cfg(test)]
mod wire;
#[cfg(test)]
mod zookeeper_adapter;

/// Counts what a test allocates, for the tests of scale.
#[global_allocator]
static ALLOCATOR: cap::Cap<std::alloc::System> = cap::Cap::new(std::alloc::System, usize::MAX);
