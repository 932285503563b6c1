//! A process group: its members, and how it is ended.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leasehold_client::{Moment, clock};
use rustix::process::{Pid, Signal, kill_process_group};

use super::stderr::write_stderr;

/// Scanning all processes is expensive: the interval grows.
const POLL_INTERVAL_MIN: Duration = Duration::from_millis(10);
const POLL_INTERVAL_MAX: Duration = Duration::from_millis(160);

/// A killed process of ordinary size is gone within milliseconds.
const KILL_WAIT_MAX: Duration = Duration::from_secs(2);

/// Whether this process has reported a signal that could not be sent.
static HAS_REPORTED: AtomicBool = AtomicBool::new(false);

/// The command's group. The id is that of the first process, which is not reaped before the group has ended: it
/// cannot be reused.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group(pub(super) Pid);

impl Group {
    /// Sends a signal; a group that is gone is ignored. The first other failure is reported.
    pub(super) fn send(self, signal: Signal) {
        if let Err(error) = kill_process_group(self.0, signal)
            && error != rustix::io::Errno::SRCH
            && !HAS_REPORTED.swap(true, Ordering::Relaxed)
        {
            let number = signal.as_raw();
            let message = format!("signal {number} cannot be sent to the command, which may run on: {error}");
            // Before this process ends.
            write_stderr(message).finish();
        }
    }

    /// Resolves when no process of the group runs any more, or at `until`.
    pub(super) async fn emptied(self, until: Moment) {
        let mut pause = POLL_INTERVAL_MIN;
        while self.is_running() && clock::now() < until {
            tokio::time::sleep(pause.min(until.since(clock::now()))).await;
            pause = (pause * 2).min(POLL_INTERVAL_MAX);
        }
    }

    /// Sends SIGTERM if there is time, and SIGKILL at `kill_at` to the rest.
    ///
    /// Stopped processes are not continued, because the lease is lost; SIGKILL ends them.
    pub(super) async fn end(self, kill_at: Moment) {
        if clock::now() < kill_at {
            self.send(Signal::TERM);
            self.emptied(kill_at).await;
        }
        self.kill().await;
    }

    /// Sends SIGKILL, and waits until no process of the group runs any more. The wait is bounded, because a process in an
    /// uninterruptible system call ends only after the call.
    pub(super) async fn kill(self) {
        self.send(Signal::KILL);
        self.emptied(clock::now().plus(KILL_WAIT_MAX)).await;
    }

    /// Whether any process of the group is running. If unknown: yes.
    pub(super) fn is_running(self) -> bool {
        let Ok(processes) = fs::read_dir("/proc") else {
            return true;
        };
        let group = self.0.as_raw_nonzero().get();
        processes
            .filter_map(Result::ok)
            .filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok())
            .any(|stat| runs_in(&stat, group))
    }
}

/// Parses `pid (name) state ppid pgrp …`; the name may contain anything, including parentheses.
fn runs_in(stat: &str, group: i32) -> bool {
    let Some((_, rest)) = stat.rsplit_once(')') else {
        return false;
    };
    let mut fields = rest.split_whitespace();
    let (state, pgrp) = (fields.next(), fields.nth(1));
    pgrp.is_some_and(|it| it.parse() == Ok(group)) && !matches!(state, Some("Z" | "X"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_running_processes_count() {
        // Running, stopped, and zombie; a name that looks like the rest of the line; another group.
        assert!(runs_in("7 (sh) S 1 7 7 0", 7));
        assert!(runs_in("8 (sh) T 7 7 7 0", 7));
        assert!(!runs_in("7 (sh) Z 1 7 7 0", 7));
        assert!(runs_in("9 (a) Z 1 3) R 1 7 7 0", 7));
        assert!(!runs_in("9 (sh) R 1 70 7 0", 7));
        assert!(!runs_in("", 7));
    }
}
