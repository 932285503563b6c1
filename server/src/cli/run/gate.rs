//! `leasehold run-command`: what a command under a lease is before it becomes that command.
//!
//! It stops itself until its watcher knows it, and then replaces itself by the command. Two things that must happen in
//! the new process happen here, because between fork and exec they would need `unsafe`: the signal that it gets when
//! its parent dies, and that stop.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::process::{Pid, Signal, getpid, getppid, kill_process, set_parent_process_death_signal};

use super::super::output::report;
use domain::escape::visible;

/// Part of `leasehold run`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Process id of whoever started this
    #[arg(long)]
    pub parent: i32,
    #[arg(last = true, required = true)]
    pub command: Vec<OsString>,
}

/// As shells tell it.
const CANNOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Returns only when there is no such command.
pub fn run(args: &Args) -> ExitCode {
    let Some((program, rest)) = args.command.split_first() else {
        return ExitCode::from(CANNOT_RUN);
    };
    if let Err(error) = wait_for_the_watcher(args.parent) {
        report(&format!("the command cannot be put under its lease: {error}"));
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
    // Nobody would wake us, or end us, if our parent died now.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != Pid::from_raw(parent) {
        return Err(std::io::Error::other("whoever started it is gone"));
    }
    kill_process(getpid(), Signal::STOP)?;
    // From here on the watcher ends us, with a grace. This is for the case that both are killed in one moment.
    set_parent_process_death_signal(Some(Signal::TERM))?;
    if getppid() != Pid::from_raw(parent) {
        return Err(std::io::Error::other("whoever started it is gone"));
    }
    Ok(())
}
