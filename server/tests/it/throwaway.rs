//! Throwaway servers start, survive the faults that tests inject, and leave nothing behind.

mod alertmanager;
mod etcd;
mod leftovers;
mod postgres;
mod redis;
mod zookeeper;

/// Whether a process with this id is there and has not ended.
fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}
