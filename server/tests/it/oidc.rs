//! Signing in through a real identity provider, which the tests run and which lies when it is told to.

pub(crate) mod provider;
mod signing_in;
mod stage;
mod tampered;
