//! The Consul adapter against a real throwaway Consul: its observations, its fault tolerance, and its errors.

mod docs;
mod faults;
mod keys;
mod lock_delay;
mod release;
mod scale;
mod sessions;
mod watch;
mod watched_consul;
