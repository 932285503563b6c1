//! The command: the first process of its own process group.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command};
use std::time::Duration;

use leasehold_client::Lease;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process, waitid};
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};

use super::process_group::Group;

/// This binary, even if its file has been replaced.
pub(super) const OURSELVES: &str = "/proc/self/exe";

/// Fallback interval in case a SIGCHLD is missed.
const STATUS_POLL_INTERVAL: Duration = Duration::from_secs(1);
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(1);

pub(super) struct Running {
    child: Child,
    pid: Pid,
    changes: SignalStream,
}

impl Running {
    /// Starts the command's process, which stops itself before exec; [`go`](Self::go) continues it.
    ///
    /// Must be called on the main thread: the parent-death signal is sent when the forking thread ends.
    pub(super) async fn stopped(command: &[std::ffi::OsString], lease: &Lease) -> io::Result<Self> {
        let changes = signal(SignalKind::child())?;
        let child = Command::new(OURSELVES)
            .arg0("leasehold")
            .arg("run-command")
            .args(["--parent", &std::process::id().to_string(), "--"])
            .args(command)
            .env("LEASEHOLD_RESOURCE", lease.resource())
            .env("LEASEHOLD_LEASE_ID", lease.id())
            .env("LEASEHOLD_FENCING_TOKEN", lease.fencing_token().to_string())
            .process_group(0)
            .spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("the system returned no process id"))?;
        let running = Self { child, pid, changes };
        while running.status(WaitIdOptions::STOPPED)?.is_none() {
            tokio::time::sleep(STOP_POLL_INTERVAL).await;
        }
        Ok(running)
    }

    pub(super) fn group(&self) -> Group {
        Group(self.pid)
    }

    pub(super) fn go(&self) -> io::Result<()> {
        Ok(kill_process(self.pid, Signal::CONT)?)
    }

    /// Whether its first process has ended. It is not reaped, so that its process and group id stay reserved.
    pub(super) fn has_ended(&self) -> io::Result<bool> {
        let status = self.status(WaitIdOptions::empty())?;
        Ok(status.is_some_and(|it| it.exited() || it.killed() || it.dumped()))
    }

    /// Stopped by SIGTTIN or SIGTTOU, like any background process that uses the terminal.
    pub(super) fn is_stopped_by_terminal(&self) -> io::Result<bool> {
        let signal = self
            .status(WaitIdOptions::STOPPED)?
            .and_then(|it| it.stopping_signal());
        Ok(signal.is_some_and(|it| [Signal::TTIN.as_raw(), Signal::TTOU.as_raw()].contains(&it)))
    }

    /// Resolves when it may have ended.
    pub(super) async fn changed(&mut self) {
        let _ = tokio::time::timeout(STATUS_POLL_INTERVAL, self.changes.recv()).await;
    }

    /// Its exit code as in shells. Call after the group has ended.
    pub(super) fn reap(mut self) -> io::Result<u8> {
        let status = self.child.wait()?;
        let code = match status.code() {
            Some(code) => code,
            None => 128 + status.signal().unwrap_or_default(),
        };
        Ok(u8::try_from(code).unwrap_or(u8::MAX))
    }

    /// Its status, of `kinds` or ended; `None` while it runs.
    fn status(&self, kinds: WaitIdOptions) -> io::Result<Option<WaitIdStatus>> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT | kinds;
        Ok(waitid(WaitId::Pid(self.pid), options)?)
    }
}
