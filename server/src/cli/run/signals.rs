//! Signals forwarded to the command.

use std::fs;
use std::io;

use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use runtime::tasks;

const FORWARDED: [Signal; 9] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::USR1,
    Signal::USR2,
    Signal::ALARM,
    Signal::WINCH,
    Signal::TSTP,
];

/// Signals that end a program by default.
pub(super) const TERMINATING: [Signal; 4] = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM];

pub(super) struct Signals {
    inbox: mpsc::Receiver<Signal>,
    _stop: DropGuard,
}

impl Signals {
    /// Starts to receive. Signals that were ignored at start (`nohup`, background of a script) stay ignored, for
    /// this process and the command.
    pub(super) fn watch() -> io::Result<Self> {
        let ignored = ignored(&fs::read_to_string("/proc/self/status").unwrap_or_default());
        let (sender, inbox) = mpsc::channel(FORWARDED.len());
        let stop = CancellationToken::new();
        for kind in FORWARDED {
            if ignored & (1 << (kind.as_raw() - 1)) != 0 {
                continue;
            }
            let mut stream = signal(SignalKind::from_raw(kind.as_raw()))?;
            let sender = sender.clone();
            tasks::spawn("forwarded signals", stop.clone(), async move {
                while stream.recv().await.is_some() && sender.send(kind).await.is_ok() {}
            });
        }
        Ok(Self {
            inbox,
            _stop: stop.drop_guard(),
        })
    }

    pub(super) async fn next(&mut self) -> Signal {
        match self.inbox.recv().await {
            Some(signal) => signal,
            None => std::future::pending().await,
        }
    }

    /// The next signal that ends a program. Ctrl-Z stops this process meanwhile.
    pub(super) async fn terminating(&mut self) -> io::Result<Signal> {
        loop {
            let signal = self.next().await;
            if TERMINATING.contains(&signal) {
                return Ok(signal);
            }
            if signal == Signal::TSTP {
                kill_process(getpid(), Signal::STOP)?;
            }
        }
    }
}

/// The mask of ignored signals in `/proc/self/status`, one bit each.
fn ignored(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_ignored_by_nohup_are_detected() {
        // Bit 0 is signal 1 (SIGHUP); and a system without the field.
        assert_eq!(
            ignored("Name:\tx\nSigIgn:\t0000000000000001\nSigCgt:\t00000001\n"),
            1
        );
        assert_eq!(ignored(""), 0);
    }
}
