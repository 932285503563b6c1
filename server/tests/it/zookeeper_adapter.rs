//! The ZooKeeper adapter against a real throwaway ZooKeeper: its observations, its fault tolerance, and its errors.

mod access;
mod docs;
mod faults;
mod kazoo;
mod observer;
mod queues;
mod release;
mod scale;
mod watch;
mod watched_zookeeper;
