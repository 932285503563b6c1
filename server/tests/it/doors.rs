//! How people reach the console: our own TLS, a proxy in front, and what a slow or greedy client may cost.

mod places;
mod proxied;
mod refused_body;
mod slow;
pub(crate) mod stage;
mod tls;
