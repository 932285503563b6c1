//! The etcd adapter against a real throwaway etcd: what it shows, what it survives, and what it says when it cannot.

mod access;
mod docs;
mod faults;
mod keys;
mod leases;
mod passes;
mod queues;
mod releasing;
mod tls;
mod watching;
mod world;
