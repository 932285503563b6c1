//! Throwaway servers start, survive the faults that tests inject, and leave nothing behind.

#[cfg(test)]
mod alertmanager;
#[cfg(test)]
mod etcd;
#[cfg(test)]
mod leftovers;
#[cfg(test)]
mod postgres;
#[cfg(test)]
mod redis;
#[cfg(test)]
mod zookeeper;

/// Whether a process with this id is there and has not ended.
fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}
