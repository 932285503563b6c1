//! `leasehold run-guard`: the watcher process of a command.
//!
//! Reads deadlines from a pipe, and ends the command's process group when a deadline passes without a later one, on
//! request, or when the pipe closes because `leasehold run` is gone. It knows neither server nor lease.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::Duration;

use leasehold_client::{Moment, clock};
use rustix::process::Pid;
use tokio::net::unix::pipe;
use tokio::signal::unix::{SignalKind, signal};

use super::super::output::report;
use super::process_group::Group;
use super::stderr::write_stderr;

/// Part of `leasehold run`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The command's process group
    #[arg(long)]
    pub group: i32,
    #[arg(long)]
    pub grace_ms: u64,
    /// On this machine's clock since boot
    #[arg(long)]
    pub deadline_ms: u64,
}

/// Messages of `leasehold run`, one per line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WatchdogCommand {
    /// The lease is held until then.
    Deadline(Moment),
    /// The lease is lost: SIGTERM now, SIGKILL at this time.
    End(Moment),
    /// The command has ended.
    Done,
}

impl WatchdogCommand {
    pub(super) fn line(self) -> String {
        match self {
            Self::Deadline(at) => format!("deadline {}\n", at.as_millis()),
            Self::End(at) => format!("end {}\n", at.as_millis()),
            Self::Done => "done\n".to_owned(),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let moment = |text: &str| text.parse().ok().map(Moment::from_millis);
        match line.split_once(' ') {
            None => (line == "done").then_some(Self::Done),
            Some(("deadline", at)) => moment(at).map(Self::Deadline),
            Some(("end", at)) => moment(at).map(Self::End),
            Some(_) => None,
        }
    }
}

pub fn run(args: &Args) -> ExitCode {
    match watch(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&format!("the watcher of a command failed: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn watch(args: &Args) -> io::Result<()> {
    let group = Pid::from_raw(args.group).ok_or(io::ErrorKind::InvalidInput)?;
    // So that `pkill leasehold` does not match this process.
    rustix::thread::set_name(c"lease-guard")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        // Signals to a whole session or service are meant for the command; this process ends after it.
        let kinds = [
            SignalKind::hangup(),
            SignalKind::interrupt(),
            SignalKind::quit(),
            SignalKind::terminate(),
        ];
        let _ignored: Vec<_> = kinds.into_iter().map(signal).collect::<io::Result<_>>()?;
        let pipe = pipe::Receiver::from_file(File::from(io::stdin().as_fd().try_clone_to_owned()?))?;
        let mut out = io::stdout();
        out.write_all(b"ready\n").and_then(|()| out.flush())?;
        let mut watch = Watch {
            deadline: Moment::from_millis(args.deadline_ms),
            grace: Duration::from_millis(args.grace_ms),
            pipe,
            unread: Vec::new(),
        };
        if let Some((kill_at, why)) = watch.until_end().await {
            let pending_message = why.map(|why| write_stderr(why.to_owned()));
            Group(group).end(kill_at).await;
            if let Some(pending_message) = pending_message {
                pending_message.finish();
            }
        }
        Ok(())
    })
}

struct Watch {
    deadline: Moment,
    grace: Duration,
    pipe: pipe::Receiver,
    unread: Vec<u8>,
}

const GONE: &str = "`leasehold run` has exited: its command is terminated";
const SILENT: &str =
    "`leasehold run` is silent and the lease's deadline has passed: its command is terminated";

enum Word {
    Said(WatchdogCommand),
    Nothing,
    Closed,
}

impl Watch {
    /// When to send SIGKILL, and the message; `None` if the command has ended by itself.
    async fn until_end(&mut self) -> Option<(Moment, Option<&'static str>)> {
        loop {
            // All pending messages first: after a pause of this process the pipe may have a later deadline.
            match self.next() {
                Word::Said(WatchdogCommand::Done) => return None,
                Word::Said(WatchdogCommand::End(kill_at)) => return Some((kill_at, None)),
                Word::Said(WatchdogCommand::Deadline(at)) => {
                    self.deadline = at;
                    continue;
                }
                Word::Closed => {
                    let from = clock::now().min(self.deadline);
                    return Some((from.plus(self.grace), Some(GONE)));
                }
                Word::Nothing => {}
            }
            if clock::now() >= self.deadline {
                return Some((self.deadline.plus(self.grace), Some(SILENT)));
            }
            tokio::select! {
                _ = self.pipe.readable() => {}
                () = clock::sleep_until(self.deadline) => {}
            }
        }
    }

    fn next(&mut self) -> Word {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                let order = std::str::from_utf8(&line)
                    .ok()
                    .and_then(|it| WatchdogCommand::parse(it.trim_end()));
                // An unreadable message must not extend the deadline.
                match order {
                    Some(order) => return Word::Said(order),
                    None => continue,
                }
            }
            let mut chunk = [0; 4096];
            match self.pipe.try_read(&mut chunk) {
                Ok(0) => return Word::Closed,
                Ok(len) => self.unread.extend(chunk.iter().take(len)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Word::Nothing,
                Err(_) => return Word::Closed,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watchdog_messages_survive_a_round_trip() {
        // Each kind, round trip; anything else is rejected.
        let at = Moment::from_millis(1_234_567);
        for order in [
            WatchdogCommand::Deadline(at),
            WatchdogCommand::End(at),
            WatchdogCommand::Done,
        ] {
            assert_eq!(WatchdogCommand::parse(order.line().trim_end()), Some(order));
        }
        for line in [
            "",
            "deadline",
            "deadline x",
            "deadline -1",
            "end",
            "go 1",
            "done now",
        ] {
            assert_eq!(WatchdogCommand::parse(line), None, "{line}");
        }
    }
}
