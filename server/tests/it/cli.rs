//! The built binary as people and scripts run it: arguments, output, exit codes.

mod arguments;
mod bench;
mod check_config;
mod locks;
mod real;
mod rules;
mod taught;
mod unlock;

use std::path::Path;
use std::process::{Command, Output};

/// The binary in a folder of its own, without the environment of whoever runs the tests.
fn leasehold(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    command.current_dir(folder).env_clear();
    command
}

/// Exit code, standard output, standard error.
fn run(command: &mut Command) -> (i32, String, String) {
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
