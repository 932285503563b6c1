//! What tests of several topics use.

pub(crate) mod certs;
pub(crate) mod console;
pub(crate) mod dice;
pub(crate) mod ear;
pub(crate) mod eventually;
pub(crate) mod form;
pub(crate) mod html;
pub(crate) mod proxy;
pub(crate) mod refusing;
pub(crate) mod routes;
pub(crate) mod serving;
pub(crate) mod store;
pub(crate) mod traces;
pub(crate) mod unlocking;
