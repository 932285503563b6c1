//! The etcd adapter against a real throwaway etcd: its observations, its fault tolerance, and its errors.

mod access;
mod docs;
mod faults;
mod keys;
mod leases;
mod queues;
mod release;
mod scan;
mod tls;
mod watch;
pub(crate) mod watched_etcd;
