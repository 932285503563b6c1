//! Helpers shared by several topics.

pub(crate) mod browser;
pub(crate) mod caller;
pub(crate) mod form;
pub(crate) mod hostile_redis;
pub(crate) mod html;
pub(crate) mod lock_client;
pub(crate) mod promtool;
pub(crate) mod proxy;
pub(crate) mod redis_keys;
pub(crate) mod rng;
pub(crate) mod routes;
pub(crate) mod scale;
mod server_builder;
pub(crate) mod store;
pub(crate) mod task;
pub(crate) mod test_server;
pub(crate) mod unlocking;
pub(crate) mod watching;
pub(crate) mod webhook_sink;

pub(crate) use browser::Browser;
pub(crate) use caller::{Reply, TestCaller, bearer, client, code, reply, token};
pub(crate) use server_builder::load_config;
pub(crate) use store::Store;
pub(crate) use task::aside;
pub(crate) use test_server::{PASSWORD, TestServer, on};
