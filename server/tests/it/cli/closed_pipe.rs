//! Output without a reader: a secret that is printed once must not be lost in silence.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::{leasehold, run};

/// Exit code and standard error, with a pipe without a reader as standard output.
fn run_unread(command: &mut Command) -> (i32, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let (code, _, err) = run(command.stdout(writer));
    (code, err)
}

#[test]
fn a_token_that_cannot_be_printed_is_a_failure() {
    // It exists: the error names the command that revokes it.
    let folder = tempfile::tempdir().unwrap();
    let args = ["token", "create", "--name", "billing", "--role", "client"];
    let (code, err) = run_unread(leasehold(folder.path()).args(args));
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("leasehold token revoke --name billing"), "{err}");
}

#[test]
fn a_password_ends_at_its_line_and_a_lost_link_is_a_failure() {
    // Standard input stays open, as in a terminal.
    let folder = tempfile::tempdir().unwrap();
    let args = [
        "user",
        "add",
        "--name",
        "ada",
        "--role",
        "viewer",
        "--password-stdin",
    ];
    let mut adding = leasehold(folder.path())
        .args(args)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = adding.stdin.take().unwrap();
    writeln!(stdin, "correct horse battery").unwrap();
    assert!(adding.wait().unwrap().success());
    drop(stdin);
    let (code, err) = run_unread(leasehold(folder.path()).args(["user", "link", "--name", "ada"]));
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("create another"), "{err}");
}
