//! The process table as far as faults need it: a process, its descendants, their states, and signals to them.
//!
//! Postgres gives each of its sessions a process and a process group of its own, so a signal to the server's group
//! reaches only the postmaster. Reads `/proc` (Linux); elsewhere only the server itself is found.

use std::{fs, io};

use rustix::process::{Pid, Signal, kill_process};

/// Sends `signal`; a process that is gone already is not an error.
pub(super) fn send(pid: u32, signal: Signal) -> io::Result<()> {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a process id"));
    };
    match kill_process(pid, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Children, their children and so on, parents before children.
pub fn descendants(root: u32) -> Vec<u32> {
    let table: Vec<(u32, u32)> = all_pids().filter_map(|pid| Some((pid, stat(pid)?.1))).collect();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(
            table
                .iter()
                .filter(|(_, ppid)| *ppid == parent)
                .map(|(pid, _)| *pid),
        );
        next += 1;
    }
    found.split_off(1)
}

/// Stopped by a signal, or gone: it does nothing until it is resumed.
pub(super) fn is_stopped(pid: u32) -> bool {
    stat(pid).is_none_or(|(state, _)| matches!(state, 'T' | 't' | 'Z' | 'X'))
}

/// Ended. A zombie counts as ended.
pub(super) fn is_gone(pid: u32) -> bool {
    stat(pid).is_none_or(|(state, _)| matches!(state, 'Z' | 'X'))
}

fn all_pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// State and parent, from `/proc/<pid>/stat` (proc(5)). The name before them may hold spaces and parentheses.
fn stat(pid: u32) -> Option<(char, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(&text)
}

fn parse_stat(text: &str) -> Option<(char, u32)> {
    let (_, after_name) = text.rsplit_once(") ")?;
    let mut fields = after_name.split(' ');
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::parse_stat;

    #[test]
    fn a_process_name_with_parentheses_does_not_confuse_the_parser() {
        // Postgres renames its processes; anything may stand between the first and the last parenthesis.
        assert_eq!(parse_stat("17 (a) R 1) (b) T 4 17 17 0"), Some(('T', 4)));
        assert_eq!(parse_stat("17 (sh"), None);
    }
}
