//! Supervises the command while its lease is held, and ends it.

use std::time::Duration;

use leasehold_client::{Lease, LeaseState, Loss, Moment, clock};
use rustix::process::{Signal, getpid, kill_process};

use super::Args;
use super::command::Running;
use super::messages::ServerMessages;
use super::signals::{Signals, TERMINATING};
use super::stderr::write_stderr;
use super::watchdog::WatchdogCommand;
use super::watchdog_client::WatchdogClient;
use domain::escape::visible;

const STOPPED_BY_TERMINAL: &str = "the command is stopped because it reads from the terminal: redirect its input, for \
    example with </dev/null";

/// How it ended. No process of the group is left.
pub(super) enum CommandEnd {
    /// With this exit code.
    ByItself(u8),
    /// The lease was lost; the command's exit code does not matter.
    Lost,
}

pub(super) struct SupervisedLease {
    resource: String,
    grace: Duration,
    state: LeaseState,
    signals: Signals,
    messages: ServerMessages,
    running: Running,
    guard: WatchdogClient,
    /// The last deadline sent to the watcher.
    deadline: Moment,
    has_reported_stop: bool,
}

impl SupervisedLease {
    /// Starts the watcher, then the command.
    pub(super) async fn start(
        args: &Args,
        lease: &Lease,
        signals: Signals,
        messages: ServerMessages,
    ) -> anyhow::Result<Self> {
        let state = lease.state();
        let running = Running::stopped(&args.command, lease).await?;
        let deadline = state.deadline();
        let guard = match WatchdogClient::start(running.group(), args.grace, deadline).await {
            Ok(guard) => guard,
            Err(error) => {
                running.group().send(Signal::KILL);
                anyhow::bail!("cannot start the watcher of the command: {error}");
            }
        };
        let held = Self {
            resource: args.resource.clone(),
            grace: args.grace,
            state,
            signals,
            messages,
            running,
            guard,
            deadline,
            has_reported_stop: false,
        };
        // If the lease was lost meanwhile, the command does not start.
        if !held.state.is_lost() {
            held.running.go()?;
        }
        Ok(held)
    }

    /// # Errors
    /// The command cannot be supervised. No process of the group is left in this case either.
    pub(super) async fn until_ended(mut self) -> anyhow::Result<CommandEnd> {
        match self.supervise().await {
            Ok(Some(loss)) => self.end_lost(&loss).await,
            Ok(None) => self.end_with_lease().await,
            Err(error) => {
                self.end_group(self.kill_at()).await;
                Err(error)
            }
        }
    }

    /// Returns when the command has ended, or with the loss of the lease.
    async fn supervise(&mut self) -> anyhow::Result<Option<Loss>> {
        loop {
            // The deadline is checked first: this process may have been stopped, or the machine suspended.
            if let Some(loss) = self.state.loss() {
                return Ok(Some(loss));
            }
            if self.running.has_ended()? {
                return Ok(None);
            }
            self.guard.replace_if_gone(self.deadline).await?;
            self.explain_terminal_stop()?;
            tokio::select! {
                biased;
                _ = self.state.lost() => {}
                deadline = self.state.renewed_after(self.deadline) => {
                    self.guard.send(WatchdogCommand::Deadline(deadline)).await;
                    self.deadline = deadline;
                    self.messages.renewed();
                }
                why = self.state.renewal_failed(), if !self.messages.is_failing() => {
                    self.messages.renewal_failed(&why, self.state.deadline());
                }
                signal = self.signals.next() => self.forward(signal)?,
                () = self.running.changed() => {}
            }
        }
    }

    /// Reports that the command is stopped, which would look like a hang.
    fn explain_terminal_stop(&mut self) -> anyhow::Result<()> {
        if !self.has_reported_stop && self.running.is_stopped_by_terminal()? {
            self.has_reported_stop = true;
            write_stderr(STOPPED_BY_TERMINAL.to_owned());
        }
        Ok(())
    }

    fn forward(&self, signal: Signal) -> anyhow::Result<()> {
        let group = self.running.group();
        group.send(signal);
        if TERMINATING.contains(&signal) && !self.state.is_lost() {
            // A stopped command could not handle the signal. The lease is held, so it may continue.
            group.send(Signal::CONT);
        }
        if signal == Signal::TSTP {
            // Ctrl-Z stops both processes. The lease is then not renewed, so the watcher ends the command at the
            // deadline.
            kill_process(getpid(), Signal::STOP)?;
            if !self.state.is_lost() {
                group.send(Signal::CONT);
            }
        }
        Ok(())
    }

    async fn end_lost(mut self, loss: &Loss) -> anyhow::Result<CommandEnd> {
        let message = format!("{}: {loss}; the command is terminated", self.resource);
        let pending_message = write_stderr(visible(&message).into_owned());
        self.end_group(self.kill_at()).await;
        self.finish().await?;
        pending_message.finish();
        Ok(CommandEnd::Lost)
    }

    /// Ends processes that the command left running: they would continue without the lease.
    async fn end_with_lease(mut self) -> anyhow::Result<CommandEnd> {
        let group = self.running.group();
        if group.is_running() {
            self.end_group(self.kill_at()).await;
        }
        // The lease is renewed until none is left.
        while group.is_running() && !self.state.is_lost() {
            group.kill().await;
        }
        let was_lost = self.state.loss();
        let code = self.finish().await?;
        Ok(was_lost.map_or(CommandEnd::ByItself(code), |_| CommandEnd::Lost))
    }

    /// The grace begins now, or at the deadline if that has passed.
    fn kill_at(&self) -> Moment {
        clock::now().min(self.state.deadline()).plus(self.grace)
    }

    /// SIGTERM is sent by the watcher, perhaps already; SIGKILL by both.
    async fn end_group(&mut self, kill_at: Moment) {
        let group = self.running.group();
        if self.guard.send(WatchdogCommand::End(kill_at)).await {
            group.emptied(kill_at).await;
            group.kill().await;
        } else {
            group.end(kill_at).await;
        }
    }

    async fn finish(mut self) -> anyhow::Result<u8> {
        while !self.running.has_ended()? {
            self.running.changed().await;
        }
        // Before `reap`: after it the system may reuse the process id, which the watcher would then signal.
        self.guard.dismiss().await;
        Ok(self.running.reap()?)
    }
}
