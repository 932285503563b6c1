//! This side of the watcher: starts it, tells it deadlines, and starts another one if it was killed.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use leasehold_client::Moment;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin};

use super::command::OURSELVES;
use super::group::Group;
use super::watcher::Order;

/// A watcher that was stopped may not read; nothing waits for it longer than this.
const WRITE_MAX: Duration = Duration::from_millis(200);
const END_MAX: Duration = Duration::from_secs(1);

pub(super) struct Guard {
    group: Group,
    grace: Duration,
    child: Child,
    pipe: ChildStdin,
}

impl Guard {
    /// Returns when it watches.
    pub(super) async fn start(group: Group, grace: Duration, deadline: Moment) -> io::Result<Self> {
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
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
            // Ctrl-C in the terminal does not reach it.
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

    /// False when it cannot be told.
    pub(super) async fn tell(&mut self, order: Order) -> bool {
        let line = order.line();
        let written = tokio::time::timeout(WRITE_MAX, self.pipe.write_all(line.as_bytes())).await;
        matches!(written, Ok(Ok(())))
    }

    /// A watcher that is gone is replaced.
    pub(super) async fn tell_deadline(&mut self, deadline: Moment) -> io::Result<()> {
        if !self.tell(Order::Deadline(deadline)).await && self.child.try_wait()?.is_some() {
            tracing::warn!("the watcher of the command was gone, and is replaced");
            *self = Self::start(self.group, self.grace, deadline).await?;
        }
        Ok(())
    }

    /// The command has ended: so does the watcher.
    pub(super) async fn dismiss(mut self) {
        self.tell(Order::Done).await;
        drop(self.pipe);
        if tokio::time::timeout(END_MAX, self.child.wait()).await.is_err() {
            // It was stopped, or it would have gone.
            let _ = self.child.start_kill();
        }
    }
}
