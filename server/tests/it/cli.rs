//! The built binary as users and scripts run it: arguments, output, exit codes.

mod arguments;
mod check_config;
mod closed_pipe;
mod completions;
mod demo;
mod endless_answer;
mod live_server;
mod locks;
mod rules;
mod token_revoke;
mod unlock;
mod user_disable;
mod user_link;

use std::path::Path;
use std::process::{Command, Output};

/// The binary in a folder of its own, without the environment of the test run.
pub(crate) fn leasehold(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    command.current_dir(folder).env_clear();
    command
}

/// Exit code, standard output, standard error.
pub(crate) fn run(command: &mut Command) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    (
        status.code().unwrap(),
        String::from_utf8(stdout).unwrap(),
        String::from_utf8(stderr).unwrap(),
    )
}
