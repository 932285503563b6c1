//! A command while its lease is held, and its end.

use std::time::Duration;

use leasehold_client::{Lease, Loss, Moment, Standing, clock};
use rustix::process::{Signal, getpid, kill_process};

use super::Args;
use super::command::Running;
use super::guard::Guard;
use super::say::say;
use super::signals::{Signals, TERMINATING};
use super::watcher::Order;
use domain::escape::visible;

const STANDS_STILL: &str =
    "the command is stopped, because it wants to use the terminal: give it other input, like </dev/null";

/// How it ended. Nothing of it runs any more.
pub(super) enum Ended {
    /// With this exit code.
    ByItself(u8),
    /// The lease was lost; how the command ended then does not matter.
    Lost,
}

pub(super) struct Held {
    resource: String,
    grace: Duration,
    standing: Standing,
    signals: Signals,
    running: Running,
    guard: Guard,
    /// What the watcher was told last.
    deadline: Moment,
    told_of_terminal: bool,
}

impl Held {
    /// Starts the watcher, then the command.
    pub(super) async fn start(args: &Args, lease: &Lease, signals: Signals) -> anyhow::Result<Self> {
        let standing = lease.standing();
        let running = Running::stopped(&args.command, lease).await?;
        let deadline = standing.deadline();
        let guard = match Guard::start(running.group(), args.grace, deadline).await {
            Ok(guard) => guard,
            Err(error) => {
                running.group().send(Signal::KILL);
                anyhow::bail!("cannot start the watcher of the command: {error}");
            }
        };
        let held = Self {
            resource: args.resource.clone(),
            grace: args.grace,
            standing,
            signals,
            running,
            guard,
            deadline,
            told_of_terminal: false,
        };
        // A lease that was lost meanwhile gives it no moment.
        if !held.standing.is_lost() {
            held.running.go()?;
        }
        Ok(held)
    }

    pub(super) async fn until_ended(mut self) -> anyhow::Result<Ended> {
        loop {
            // The deadline comes before anything else: we may have been stopped, or the machine may have slept.
            if let Some(loss) = self.standing.loss() {
                return self.end_lost(&loss).await;
            }
            if self.running.has_ended()? {
                return self.end_with_it().await;
            }
            self.tell_of_terminal()?;
            tokio::select! {
                biased;
                _ = self.standing.lost() => {}
                deadline = self.standing.renewed_after(self.deadline) => {
                    self.guard.tell_deadline(deadline).await?;
                    self.deadline = deadline;
                }
                signal = self.signals.next() => self.forward(signal)?,
                () = self.running.changed() => {}
            }
        }
    }

    /// It would look as if it hung.
    fn tell_of_terminal(&mut self) -> anyhow::Result<()> {
        if !self.told_of_terminal && self.running.is_stopped_by_terminal()? {
            self.told_of_terminal = true;
            say(STANDS_STILL.to_owned());
        }
        Ok(())
    }

    fn forward(&self, signal: Signal) -> anyhow::Result<()> {
        let group = self.running.group();
        group.send(signal);
        if TERMINATING.contains(&signal) && !self.standing.is_lost() {
            // What stands still could not follow it. The lease is held, so it may go on.
            group.send(Signal::CONT);
        }
        if signal == Signal::TSTP {
            // Ctrl-Z stops both. Nobody renews then, so past the deadline the watcher ends the command.
            kill_process(getpid(), Signal::STOP)?;
            if !self.standing.is_lost() {
                group.send(Signal::CONT);
            }
        }
        Ok(())
    }

    /// SIGTERM by the watcher, which may have done so already; SIGKILL by both.
    async fn end_lost(mut self, loss: &Loss) -> anyhow::Result<Ended> {
        let message = format!("{}: {loss}; the command is ended", self.resource);
        let saying = say(visible(&message).into_owned());
        let kill_at = clock::now().min(self.standing.deadline()).plus(self.grace);
        let group = self.running.group();
        if self.guard.tell(Order::End(kill_at)).await {
            group.emptied(kill_at).await;
            group.send(Signal::KILL);
        } else {
            group.end(kill_at).await;
        }
        self.finish().await?;
        saying.finish();
        Ok(Ended::Lost)
    }

    /// What it started and left running goes with it: it would run on without the lease.
    async fn end_with_it(self) -> anyhow::Result<Ended> {
        let group = self.running.group();
        if group.is_running() {
            let kill_at = clock::now()
                .plus(self.grace)
                .min(self.standing.deadline().plus(self.grace));
            group.end(kill_at).await;
        }
        let was_lost = self.standing.loss();
        let code = self.finish().await?;
        Ok(was_lost.map_or(Ended::ByItself(code), |_| Ended::Lost))
    }

    async fn finish(mut self) -> anyhow::Result<u8> {
        while !self.running.has_ended()? {
            self.running.changed().await;
        }
        // Only now may the process id be given to another.
        self.guard.dismiss().await;
        Ok(self.running.reap()?)
    }
}
