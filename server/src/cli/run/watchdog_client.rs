//! Client of the watcher: starts it, sends deadlines, and replaces it if it was killed.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use domain::duration::millis;
use leasehold_client::Moment;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin};

use super::command::OURSELVES;
use super::process_group::Group;
use super::stderr::write_stderr;
use super::watchdog::WatchdogCommand;

/// Write timeout: a stopped watcher does not read.
const WRITE_MAX: Duration = Duration::from_millis(200);
const END_MAX: Duration = Duration::from_secs(1);

pub(super) struct WatchdogClient {
    group: Group,
    grace: Duration,
    child: Child,
    pipe: ChildStdin,
}

impl WatchdogClient {
    /// Returns when the watcher is ready.
    pub(super) async fn start(group: Group, grace: Duration, deadline: Moment) -> io::Result<Self> {
        let grace_ms = millis(grace).unsigned_abs();
        let mut command = Command::new(OURSELVES);
        command
            .arg0("leasehold")
            .arg("run-guard")
            .args(["--group", &group.0.as_raw_nonzero().to_string()])
            .args(["--grace-ms", &grace_ms.to_string()])
            .args(["--deadline-ms", &deadline.as_millis().to_string()])
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // So that Ctrl-C in the terminal does not reach it.
            .process_group(0);
        let mut child = tokio::process::Command::from(command).spawn()?;
        let (Some(pipe), Some(mut out)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let mut ready = [0; 6];
        out.read_exact(&mut ready).await?;
        Ok(Self {
            group,
            grace,
            child,
            pipe,
        })
    }

    /// False if the message could not be sent.
    pub(super) async fn send(&mut self, order: WatchdogCommand) -> bool {
        let line = order.line();
        let written = tokio::time::timeout(WRITE_MAX, self.pipe.write_all(line.as_bytes())).await;
        matches!(written, Ok(Ok(())))
    }

    /// Starts another watcher if this one was killed.
    pub(super) async fn replace_if_gone(&mut self, deadline: Moment) -> io::Result<()> {
        if self.child.try_wait()?.is_some() {
            write_stderr("the watcher of the command has exited and is replaced".to_owned());
            let started = Self::start(self.group, self.grace, deadline).await;
            *self = started.map_err(|error| {
                io::Error::other(format!(
                    "the watcher of the command exited and cannot be replaced: {error}"
                ))
            })?;
        }
        Ok(())
    }

    /// Ends the watcher after the command has ended.
    pub(super) async fn dismiss(mut self) {
        self.send(WatchdogCommand::Done).await;
        drop(self.pipe);
        if tokio::time::timeout(END_MAX, self.child.wait()).await.is_err() {
            // It was stopped; otherwise it would have ended.
            let _ = self.child.start_kill();
        }
    }
}
