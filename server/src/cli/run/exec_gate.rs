//! `leasehold run-command`: the process that becomes the command.
//!
//! It stops itself until the watcher knows it, and then calls exec. The parent-death signal and the stop happen
//! here, because doing so between fork and exec would need `unsafe`.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::process::{Pid, Signal, getpid, getppid, kill_process, set_parent_process_death_signal};

use super::super::output::report;
use domain::escape::visible;

/// Part of `leasehold run`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Process id of the parent
    #[arg(long)]
    pub parent: i32,
    #[arg(last = true, required = true)]
    pub command: Vec<OsString>,
}

/// Exit codes as in shells.
const CANNOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Returns only if exec fails.
pub fn run(args: &Args) -> ExitCode {
    let Some((program, rest)) = args.command.split_first() else {
        return ExitCode::from(CANNOT_RUN);
    };
    if let Err(error) = wait_for_the_watcher(args.parent) {
        report(&format!("the command cannot be started under its lease: {error}"));
        return ExitCode::from(CANNOT_RUN);
    }
    let error = Command::new(program).args(rest).exec();
    report(&visible(&format!("{}: {error}", program.to_string_lossy())));
    ExitCode::from(match error.kind() {
        std::io::ErrorKind::NotFound => NOT_FOUND,
        _ => CANNOT_RUN,
    })
}

fn wait_for_the_watcher(parent: i32) -> std::io::Result<()> {
    // Until the watcher knows this process, SIGKILL on the parent's death: no other process would continue or end it.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != Pid::from_raw(parent) {
        return Err(std::io::Error::other("the process that started it has exited"));
    }
    kill_process(getpid(), Signal::STOP)?;
    // From here on the watcher ends the command with a grace period. This covers the case that both are killed at
    // once.
    set_parent_process_death_signal(Some(Signal::TERM))?;
    if getppid() != Pid::from_raw(parent) {
        return Err(std::io::Error::other("the process that started it has exited"));
    }
    Ok(())
}
