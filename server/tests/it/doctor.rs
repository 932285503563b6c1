//! `leasehold doctor` on real servers: healthy, then one fault at a time, each found with its remedy. And `leasehold
//! migrate`, which it recommends.

mod backends;
mod certificates;
mod command;
mod healthy;
mod lease_store;
mod provider;
mod receivers;
mod store;
