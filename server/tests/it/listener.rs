//! The listener: its own TLS, a proxy in front of it, and limits on slow or greedy clients.

mod connection_slots;
mod proxy_protocol;
mod refused_body;
mod slow_clients;
mod tls;
pub(crate) mod tls_client;
