//! Sign-in through a real identity provider, which the tests run and can make misbehave.

pub(crate) mod provider;
mod provider_sign_in;
mod sign_in;
mod tampering;
