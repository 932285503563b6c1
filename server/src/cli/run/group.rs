//! A process group: who is in it, and how it is ended.

use std::fs;
use std::time::Duration;

use leasehold_client::{Moment, clock};
use rustix::process::{Pid, Signal, kill_process_group};

/// Looking through all processes costs something: ever more seldom.
const LOOK_FIRST: Duration = Duration::from_millis(10);
const LOOK_LAST: Duration = Duration::from_millis(160);

/// Of a command. The id is the first process's, which is not reaped before the group is ended: it cannot mean another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group(pub(super) Pid);

impl Group {
    /// A group that is gone needs no signal.
    pub(super) fn send(self, signal: Signal) {
        if let Err(error) = kill_process_group(self.0, signal)
            && error != rustix::io::Errno::SRCH
        {
            tracing::warn!("signal {signal:?} does not reach the command: {error}");
        }
    }

    /// Returns when none of it runs any more, or at `until`.
    pub(super) async fn emptied(self, until: Moment) {
        let mut pause = LOOK_FIRST;
        while self.is_running() && clock::now() < until {
            tokio::time::sleep(pause.min(until.since(clock::now()))).await;
            pause = (pause * 2).min(LOOK_LAST);
        }
    }

    /// SIGTERM unless it is too late for that, and SIGKILL at `kill_at` to what is left.
    ///
    /// What is stopped stays so: it could only go on under a lease that is lost. SIGKILL ends it as it is.
    pub(super) async fn end(self, kill_at: Moment) {
        if clock::now() < kill_at {
            self.send(Signal::TERM);
            self.emptied(kill_at).await;
        }
        self.send(Signal::KILL);
    }

    /// Whether any process in it has not ended. Where that cannot be seen: yes.
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

/// Reads `pid (name) state ppid pgrp …`; the name may hold anything, parentheses too.
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
    fn only_what_still_runs_counts() {
        // Running, stopped, and ended but not reaped; a name that looks like the rest of the line; another group.
        assert!(runs_in("7 (sh) S 1 7 7 0", 7));
        assert!(runs_in("8 (sh) T 7 7 7 0", 7));
        assert!(!runs_in("7 (sh) Z 1 7 7 0", 7));
        assert!(runs_in("9 (a) Z 1 3) R 1 7 7 0", 7));
        assert!(!runs_in("9 (sh) R 1 70 7 0", 7));
        assert!(!runs_in("", 7));
    }
}
